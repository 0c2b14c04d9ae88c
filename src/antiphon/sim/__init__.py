"""Deterministic simulation of whole parties under faults: the real code of many peers, on virtual time, from one seed.

    scenario       `Scenario`: members, policy and acts of a run, drawn from a seed
    run            `run`: play a scenario, wait for quiet, check the laws
    search         play many seeds; shrink a failing scenario
    trace          the events of a run, one line each
    laws           the conditions that must hold when all is quiet
    world          virtual time, the queue of events, the random generator
    network        connections: delay, loss, repetition, breaks, partitions, sleeping peers
    disk           disks that fill up and lose unsynced writes in a crash
    peer_links     `PeerLinks`: the connections of a peer, and the link over each
    peer           `SimPeer`: one device with its stores, processor, epochs and links
    workload       the writes of a run, and which were acknowledged
    account        members and revocations as the simulator itself has caused them
    maxima         the largest sizes of a peer's queues and caches
    epoch_events   what a device wrote about epochs, as events of the trace
    keys           a key store without waits for the disk
    byzantine/     attacks of byzantine peers
    picture/       draw a trace as SVG

In: a seed. Out: an `Outcome` with the trace and the broken laws. It may import every package but `cli`; pictures are
drawn from traces alone. Start reading at `run`. The user's page is docs/simulation.md.
"""
