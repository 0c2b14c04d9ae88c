"""Room sync."""
