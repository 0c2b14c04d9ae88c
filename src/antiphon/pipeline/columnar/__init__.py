"""The fold of flat objects in numpy columns, for all items of a partition together.

A *flat object* is an item of the object model in which every register holds a text or an integer at a top-level key of
at most 16 bytes, and to which only such writes have come. Most items are flat; they cost no Python call each.
Every other item is left to `antiphon.model.fold.fold`. Both ways give the same bytes; tests compare them.

    mutation_reader     messages → register writes, and the messages that each write names
    snapshot_reader     item snapshots → register entries, last seqs by feed, and where the model state lies
    register_fold       writes (and stored entries) → the entries that remain; `flat` says for which items that holds
    snapshot_writer     entries → the snapshot bytes of each object

In: `order.total_order.OrderedMessages` (the messages of one partition, sorted) and, for an incremental run,
snapshots from the table `items`. Out: `RegisterFold`, which `fold` and `tables` read item by item.
May import `order`, `plan` and the packages below the pipeline; runs in Spark's Python workers.

This room repeats the rules of `antiphon.model.object.state` (`RegisterFold._resolve`) and the
layout of item snapshots. A change of the object model must change this room too.
"""
