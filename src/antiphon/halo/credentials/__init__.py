"""Room credentials."""
