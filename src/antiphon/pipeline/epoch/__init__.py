"""Room epoch."""
