"""The array model: a list that several people edit at once, with moves.

Start reading at `position` for the order of elements and at `model` for the commands.

model     `ArrayModel`: commands, reading, and the model interface
position  position keys, whose byte order is the order of the elements
pieces    `Piece`: elements of one message at consecutive keys; the order of all pieces
state     `ArrayState`: elements by id and by position key, and effects on elements that have not arrived
codec     mutations and snapshots as protobuf, with all checks
undo      the changes that undo one message

In: mutations with their stamps, and commands. Out: values, snapshots and mutations. May import `model`, `value`,
`heard`, `bounds`, `wire` and `undo` of `antiphon.model`, but no other model.
"""
