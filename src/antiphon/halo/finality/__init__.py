"""Room finality."""
