"""Room member."""
