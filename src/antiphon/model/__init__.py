"""Models: the state machines that give items their meaning, and the one fold that every engine calls."""
