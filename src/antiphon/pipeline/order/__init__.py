"""Room order."""
