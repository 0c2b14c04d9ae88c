"""Who may do what: keys, identities, devices, credentials, the party state machine."""
