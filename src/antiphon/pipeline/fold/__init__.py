"""Room fold."""
