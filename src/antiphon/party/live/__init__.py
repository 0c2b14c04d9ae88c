"""Room live."""
