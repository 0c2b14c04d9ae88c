"""Room session."""
