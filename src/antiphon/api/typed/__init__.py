"""Room typed."""
