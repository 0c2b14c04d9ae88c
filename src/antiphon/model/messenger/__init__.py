"""The messenger model: a threaded log of posts, with edits, redactions and retention.

Start reading at `model`.

model  `MessengerModel`: commands, threads, retention, undo, and the model interface
state  `MessengerState`: posts by stamp, and effects on posts that have not arrived
codec  mutations and snapshots as protobuf, with all checks

In: mutations with their stamps, and commands. Out: posts, snapshots and mutations. May import `model`, `value`,
`heard`, `wire` and `undo` of `antiphon.model`, but no other model.
"""
