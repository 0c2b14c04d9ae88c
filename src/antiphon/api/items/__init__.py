"""Room items."""
