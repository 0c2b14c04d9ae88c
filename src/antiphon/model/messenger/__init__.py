"""Room messenger."""
