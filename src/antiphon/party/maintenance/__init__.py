"""Room maintenance."""
