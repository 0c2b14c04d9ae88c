"""What byzantine peers do, by where it is wrong: messages, blocks, forks, credentials, epochs."""
