"""Room keys."""
