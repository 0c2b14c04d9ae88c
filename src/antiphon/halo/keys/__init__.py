"""Private keys: where they are kept, and whom they name.

identity         identities (persons and bots) and devices: create, load, recover
key_store        `KeyStore`, the file of private keys and contacts, with its lock and its three protections
key_file         the bytes of that file, as pure functions
recovery_phrase  the seed of an identity as 24 words

A path and a passphrase come in; key pairs go out. Imports `antiphon.core` only.
"""
