"""Maintenance of a device's parties: verify epochs, collect garbage, see who costs how much.

verify_epoch      `verify_epoch`, `Verifier`: recompute an epoch from its messages, and compare
verify_report     `Verification`, `Difference`: the result, for people and as JSON
costs             `party_costs`: what each identity costs this device
devices           `party_devices`: the devices that write in a party
garbage           `collect_garbage`: delete blobs that no party refers to
referenced_blobs  the file contents that a party's items refer to

In: open parties, or stores that are only read. Out: reports; garbage collection deletes blobs, nothing else is written.
Imports `party.live` and the rooms below it.
"""
