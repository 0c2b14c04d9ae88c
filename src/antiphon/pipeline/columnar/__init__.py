"""Room columnar."""
