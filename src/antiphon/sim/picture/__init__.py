"""Room picture."""
