"""Room index."""
