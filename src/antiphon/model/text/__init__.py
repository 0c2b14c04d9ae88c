"""Room text."""
