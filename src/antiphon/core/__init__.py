"""Values that everything else is made of: keys, ids, CIDs, timeframes, stamps, errors, messages, ports."""
