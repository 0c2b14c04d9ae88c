"""A live party: read and write its items, listen to changes, read its past, and manage all parties of a device.

Start reading at `processor.py`.

processor        `PartyProcessor`: one party, running: its engine, its items and batches
engine_lock      `Locked`: the lock around the engine; damaged items are built again when it is left
batch            `Batch`: messages that are tried on the states, then written together
item             `Item`: a handle on one item, to read and write it
unlisted_control `UnlistedControl`: control blocks that the next message lists as seen
resting          let a party rest when it is closed, and find at the next opening that it still rests
listeners        `Listeners`: callbacks after changes, of a whole party or of one item
undo             `UndoStack`: undo and redo of this device's own changes
history          an item's messages, and its state at an earlier timeframe (`Past`, `PartyPast`)
past_epochs      an item as an earlier epoch's snapshot has it (`Earlier`), fetching blobs if needed
anchored_stream  `ReadStream`, `WriteStream`: messages after an anchor, resumable after a restart
feed_watcher     `FeedWatcher`: the thread that processes new blocks
index_attach     attach an index for queries to the item store, and fill it
status           `Status`: the state of a running party, for monitoring
manager          `PartyManager`: the parties of a device: create, subscribe, open, pause, delete
unopened_party   `UnopenedParty`: the known feeds of a party that does not run here

In: feeds, an `Authority`, an item store, blobs. Out: item states, messages in this device's feed, callbacks. Imports
`party.epochs`, `party.store`, `party.engine` and the packages below `party`.
"""
