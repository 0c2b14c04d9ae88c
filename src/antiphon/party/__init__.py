"""A party on this machine: what is known of it, and (with later issues) the live pipeline."""
