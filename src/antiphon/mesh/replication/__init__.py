"""Replication: peers of a party exchange blocks and blobs until all of them hold the same.

Start reading at `session`: one session replicates one party with one other peer. It is free of network and clock:
bytes and times are passed in, so a transport or a simulation can drive it.

session        `Session`: one end of a session; dispatches messages to the parts below
admits         `Admits`: the port that says which device may have which party, and its answer by control feeds
session_gate   `SessionGate`: what one session may give to the other end, and take from it
handshake      `Handshake`: the names by which the two ends detect a restart of the other
announcements  `Announcer`: announces the feeds that changed here
requests       `Requester`: requests the blocks and blobs that are missing here
responses      `Responder`: answers the requests of the other end
open_requests  `OpenRequests`: the requests that are not answered: time-outs, parts, windows
window         `Window`: how many bytes of answers may be under way
timeouts       `Timeout`: how long to wait for an answer
replica        `Replica`: a party's stores as all sessions share them; verifies before it takes anything
wanted_branches  `WantedBranches`: the blocks that waiting blocks refer to, to be requested by their hashes
name_search    `NameSearch`: looks for acts that name unknown feeds, on branches of forked control feeds
range_room     `RangeRoom`, `join_ranges`: spans that are joined under one head
joining        `Joining`: lets a newcomer wait for the last epoch, so that it need not take the history
digest         `HoldingsDigest`: a hash of all that is held, by which two ends see that neither lacks anything
holdings       `Holdings`: which blocks of each feed are held here, with versions
blob_scope     `BlobScope`: the blobs that belong to a party, so that a session gives no others
in_flight      `InFlight`: the requests of all sessions, so that nothing is requested twice
message        the messages as values
codec          the messages as bytes
limits         bounds of messages, and times

In: messages of other peers, as bytes. Out: messages as bytes, verified blocks in the `FeedStore`, blobs in the blob
store. May import `party` and everything below it, not `api`, `sim` or `cli`.
"""
