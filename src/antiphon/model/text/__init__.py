"""The text model: text with formatting, embedded items and cursors, for several people who type at once.

Start reading at `fugue` for the tree of elements and at `model` for the commands.

model            `TextModel`: commands, reading, cursors, and the model interface
fugue            `Sequence`: the Fugue tree of a text; insertion, deletion, positions
waiting_rows     insertions whose parent is not here, as rows
orphans          where those are shown
edges            the first and the last run of a subtree, without walking down to it
leaves           `Leaf`: adjacent runs of the document; most leaves of a hostile text are packed
packed_runs      the runs of a leaf as bytes
clock_order      `ClockOrder`: the runs of one writer by clock
absent_feeds     deletions of elements of feeds that have none here, as rows of a snapshot
clock_ranges     ranges of clocks, as those of deletions, in an array
runs             runs of elements, in which a sequence is stored
siblings         the children of an element, by name
marks            `TextState`: a sequence and its formatting
mark_columns     its marks, in columns
copies           the elements that undo brought back, and what they are copies of
codec            mutations as protobuf, with all checks that need no state
snapshot_writer  the canonical snapshot, in columns
snapshot_cell    the part of it that a block of runs makes, kept until the block changes
snapshot_marks   the marks in it, encoded from their columns
snapshot_reader  a text from its snapshot, with all checks
snapshot_columns the columns of one writer in a snapshot, divided into runs
snapshot_tree    the tree of a text from those columns
undo             the mutations that undo one message
yjs              texts in the format of Yjs, out and in

In: mutations with their stamps, and commands. Out: text, snapshots and mutations. May import `model`, `value`, `heard`,
`wire`, `word_table` and `undo` of `antiphon.model`, but no other model.
"""
