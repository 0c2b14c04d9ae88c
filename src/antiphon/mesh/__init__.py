"""MESH: how the blocks and blobs of a party reach other devices. Rooms, from low to high:

channel      an encrypted, authenticated stream of frames between two devices, over ordered bytes
transport    ordered bytes between two machines: TCP, and memory
replication  one party with one other device: which blocks each end lacks, requests, answers
link         all parties that two devices share, over one channel
node         all connections and parties of a device; threads

In: bytes of other devices. Out: bytes for them, verified blocks in the `FeedStore`, blobs in the blob store. May import
`party` and everything below it, not `api`, `sim` or `cli`. The design is in docs/design/network.md and replication.md.
"""
