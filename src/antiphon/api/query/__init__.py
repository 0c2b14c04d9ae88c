"""Room query."""
