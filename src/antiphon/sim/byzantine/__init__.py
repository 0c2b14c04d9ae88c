"""Room byzantine."""
