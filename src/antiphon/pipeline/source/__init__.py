"""Room source."""
