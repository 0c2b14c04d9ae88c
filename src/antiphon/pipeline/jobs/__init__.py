"""Room jobs."""
