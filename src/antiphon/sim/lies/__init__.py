"""What byzantine peers say, by where it is wrong: messages, blocks, histories, credentials, epochs."""
