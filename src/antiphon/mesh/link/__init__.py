"""Links: all parties that two devices share, over one channel.

Start reading at `link`: a `Link` finds out which parties both ends admit each other to, and carries their messages,
fair between parties. To a stranger it says the same as a device without the party would: nothing.

link            `Link`: one end of a link; passes frames to the parts below
host            `LinkHost`: the port behind a link: which parties there are, and who may speak in them
party_sessions  `PartySessions`: a `LinkHost` for one thread, with replicas and their sessions
party_tags      `PartyTags`: tags and keys of parties, bound to one channel
matching        `Matching`: the parties that this end speaks in, and those that both ends do
shown_messages  `ShowQueue`, `ShowJudge`: messages to an end that may not know of this device's rights
streams         `StreamQueue`: messages that wait to be sent, cut into pieces, party by party in turns
assembly        `Assembly`: messages that are arriving in pieces
keep_alive      `KeepAlive`: notices an end that is silent
frames          the frames of a link as values, and as bytes
limits          bounds of frames and queues, and times

In: bytes of a channel, messages of sessions. Out: bytes for the channel, messages for sessions. No I/O, clock or
randomness of its own. May import `replication` and `channel`, not `transport` or `node`.
"""
