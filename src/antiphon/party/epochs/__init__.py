"""Room epochs."""
