"""Queries: a value that runs on a peer's indexes, stands as a live subscription, and travels to others."""
