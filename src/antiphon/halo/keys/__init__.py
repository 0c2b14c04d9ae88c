"""Private keys: where they are kept, and which identity or device they belong to.

identity         identities (persons and bots) and devices: create, load, recover from a phrase
key_store        `KeyStore`, the file of private keys and contacts, with its lock and its three protections
key_file         the bytes of that file, as pure functions
recovery_phrase  24 words ↔ the seed of an identity's key

A path and a passphrase come in; key pairs go out. Imports `antiphon.core` only.
"""
