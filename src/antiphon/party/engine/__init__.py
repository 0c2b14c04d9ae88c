"""The live engine: verified feeds in, live item states out. No threads, no locks, no clock.

Start reading at `engine.py`: `Engine.process` runs the parts below in this order.

engine          `Engine`: one party; delivers, judges, folds, refolds items after late messages, saves
ports           `Authority` and `Items`: the interfaces to rights and to the item store, and the values that cross them
authority       `PartyAuthority` (the control state of HALO) and `OpenAuthority` (a store without credentials)
lane            `Lane`: the delivery state of one data feed
rest            `Rest`, `RestingLanes`: a party after whose closing nothing has come
delivery        `Delivery`: blocks of all lanes in a causal order, as runs
judge           `Judge`: ranges of messages that are void; `mark_void`
demux           `ItemDemuxer`: runs of blocks → messages by item
authors         `Authors`: a cache of message authors, for items with access lists
cache           `ItemCache`: the open items
branch_geneses  `BranchGeneses`: geneses beyond a fork that others may have built on
cold_fold       fold of very many items at once, as in a rebuild; bypasses the cache
fold_times      `FoldTimes`: the seconds that folding took, by feed
forked_worker   `ForkedWorker`: a second core for `cold_fold`
rejudge         `Rejudge`: items to fold again after late rights, forks, bodies or model code
postings        codec of postings: where the messages of an item are
rot             `Rot`: feeds with blocks that have changed on the disk, delivered up to there
message_lookup  `MessageLookup`: postings → messages, from the feed store
row_cache       rows of the item store, encoded ahead of a save
epoch_base      `EpochBase`: the snapshot from which all states start
lanes_at_cut    lanes at a cut in the past, rebuilt from feeds
scope           `Scope`: the items that are folded, if the device holds only one view
gc_pause        `gc_paused`: long work without the garbage collector
yielding        `YieldPoint`: long work that yields to writers

In: a `FeedReader`, an `Authority`, an `Items` store. Out: item states, verdicts, and calls of `Engine.changed`. Imports
the packages below `party`, and no other room of it but for types.
"""
