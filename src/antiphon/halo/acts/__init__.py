"""Room acts."""
