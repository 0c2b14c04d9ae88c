"""The channel: an encrypted, authenticated stream of frames between two devices, over any ordered bytes.

Start reading at `channel`. Nothing here does I/O: bytes, time and randomness are handed in, so a transport, a test
or the simulator drives it.

channel             `Channel`: one end, from the handshake to the last record
payloads            the payloads of the three handshake messages, as values and as bytes
seen_handshakes     `SeenHandshakes`: each first message is answered once
record_reader       `RecordReader`: cuts a stream of bytes into messages and records
device_keys         Ed25519 keys of devices as static keys of Noise
noise               the Noise protocol framework: `HandshakeState`, `CipherState`, patterns and suites
limits              bounds of messages and records, and times

In: bytes of the other end. Out: bytes for it, frames, and the proven key of the other device. May import `core` alone.
"""
