"""Room array."""
