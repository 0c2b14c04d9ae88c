"""Room rights."""
