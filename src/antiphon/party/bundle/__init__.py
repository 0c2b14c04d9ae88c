"""Room bundle."""
