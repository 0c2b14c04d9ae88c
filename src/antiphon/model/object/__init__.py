"""Room object."""
