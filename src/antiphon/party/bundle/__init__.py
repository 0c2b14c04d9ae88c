"""Bundles: a party in one CAR file, with its feeds, its last snapshot and the contents of its files.

export   `export_party`: write a running party into a file
import_  `Bundle`: verify a file completely, then put its blobs and blocks into stores
nodes    `BundleRoot`, `BundleFeed` and lists of links: the DAG-CBOR nodes of a bundle

In: a `PartyProcessor`, or a `CarFile`. Out: a file, or blobs and blocks in the stores of a device. Imports
`party.maintenance`, `party.live` and the rooms below them. The format is in docs/design/formats.md.
"""
