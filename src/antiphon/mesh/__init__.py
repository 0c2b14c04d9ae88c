"""How it travels: what a peer lacks, where to get it, and nothing trusted that was not checked."""
