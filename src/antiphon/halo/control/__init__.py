"""Room control."""
