"""Membership: one device's part in a party.

membership      `Membership`: found or join a party, open feeds, write credentials
own_feeds       `OwnFeeds`: the feeds of the device, below `Membership`; read when something asks for them
late_opening    `LateOpening`: work that is done before the first use
device_proof    what a device shows of itself to one that does not know it, and the judgement on it
cuts            which feeds an act of this device cuts, and where
votes           declare, attest, endorse and refuse epochs
genesis_checks  the checks of an epoch genesis that need control feeds only
fork_reports    publish evidence of forks to the party (`feed.fork` checks it)
child_party     found a child party, and repeat there what the parent took away

A feed store, a key store and a device come in; blocks of the device's own feeds go out. Imports every other room.
"""
