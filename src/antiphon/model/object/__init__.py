"""The object model: nested properties, add-wins sets and counters.

Start reading at `model` for the commands and at `state` for the rules of concurrent changes.

model           `ObjectModel`: commands, reading, and the model interface
register        paths, and the register at each path; `Mark`, `Counter`, `Node`
state           `ObjectState`, `Op`: the effect of an operation on the state
pending         effects of mutations on messages that have not arrived
edit            from a user's change to the operations of one mutation
view            the value that shows at a path, and its conflicts
undo            the operations that undo one message
mutation_codec  mutations as protobuf, with all checks
fast_mutation   mutations that write one text or integer at one key, applied by hand
snapshot_codec  the canonical snapshot of an object
fast_snapshot   snapshots of flat objects, read by hand

In: mutations with their stamps, and commands. Out: values, snapshots and mutations. May import `model`, `value`,
`heard`, `bounds`, `wire` and `undo` of `antiphon.model`, but no other model.
"""
