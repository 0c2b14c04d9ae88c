"""Generate homes full of parties from a seed, for tests, benchmarks and demonstrations. See docs/generate.md.

home            `generate`: write a whole home into a folder; start reading here
options         `Options`: how much to generate; equal options give equal feeds, byte for byte
report          `HomeReport`, `PartyReport`: what was generated, and what a peer must refuse
party           `PartyWriter`: write one party: phases, partitions, turns, batches, epochs
members         the party's founder and other writers, admitted with their feeds
world           `World`, `Side`: the items of a party, and what each side of a partition knows of them
item_edits      edits of texts, arrays, threads, files and nested objects, made from their states
mutation_parts  mutations of flat objects, joined from parts that are encoded in advance
faults          messages that peers must refuse: invalid ones, late ones of revoked members, forks
epochs          `EpochMaker`: two devices that declare and attest real epochs
memory_feed     `MemoryFeed`: a writer's feed in memory, which knows the stamp of the next block
sink            `Sink`: blocks on their way into the feed store, many in a transaction
seeded          keys and a clock that depend on the seed alone

In: `Options`. Out: a home, as its founder's device has it after replication with all writers, and a report. Imports
`party` and the packages below it; nothing in the library imports it but `cli`.
"""
