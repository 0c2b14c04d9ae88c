"""Epochs of a running party: declare, recompute, attest, rebase, prune.

An epoch is a numbered cut of all data feeds with the CID of the snapshot at that cut. `halo.finality` decides which
epoch is final; this room computes snapshots and moves a party onto them. Start reading at `epochs.py`.

epochs             `Epochs`: one device's part in a party's epochs, and the entry point of this room
snapshot_fold      `EpochFold`: previous snapshot + messages in the cut → the snapshot of an epoch
plan               `EpochPlan` of a declared epoch: its cut, control state, models, and the policy of that time
capture            a consistent view of lanes and items, taken under the lock, computed from without it
checks             checks of a declared epoch against the data feeds, before it is recomputed
other_branches     `OtherBranches`: feeds of which a final epoch holds another branch, and what proves it
external_snapshot  compare a snapshot that another program computed (Spark), instead of folding it again
rebase             move a party onto an epoch, or start an empty item store at a snapshot; give items rows
pruning            drop messages below a cut, and bodies of erased messages
driver             `EpochDriver`: when to declare, attest and vote, by policy and silence; no thread, no clock
worker             `EpochWorker`: the one thread that runs the drivers of all parties
thresholds         measure a party against the policy that says when an epoch is due
listing            epochs and votes as records for people
renewal            new feeds for a device whose feeds have ended

In: a `PartyProcessor` and a `Membership`. Out: snapshots in the blob store, credentials in the control feed, and an
engine on a new base. Imports `party.engine`, `party.store` and the packages below `party`; `party.live` only for types.
"""
