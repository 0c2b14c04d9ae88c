"""Room codec."""
