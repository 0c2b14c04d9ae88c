"""Core: the values that every other package uses.

keys       `KeyPair`, `PublicKey`: Ed25519 keys, which name identities, devices, parties and feeds
ids        `ItemId`: ids of items
cid        `Cid`: names of blobs by content; DAG-CBOR
stamp      `Stamp`: names of messages, and the total order
timeframe  `Timeframe`: a vector clock over feeds; `Causality`
sightings  `Sightings`: the timeframes of all blocks of a feed, as one log
errors     the tree of errors
local_path folders that users name; a URI is refused
disk_room  tells a full disk from other errors, and names it
reasons    `Reason`: stable codes of why something does not count
ports      `Clock`, `Randomness`: time and randomness, which are passed in
output_file  `output_file`: files that appear whole or not at all
plain_text characters of peers' text that command a terminal or mislead the eye, in their written form
output_folder  `output_folder`: folders that appear whole or not at all
home_version  the version of a home, in its file `home.version`
codec      `Reader`: bounded reads of bytes that may be hostile
exports    public names of a package, loaded when they are first used
generics   `TypeVar` with a default
lazy       a cached property without a lock
v1/        protobuf messages, generated from proto/antiphon/v1

Imports no other package of Antiphon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.exports import lazy_exports

if TYPE_CHECKING:
    from antiphon.core.cid import Cid as Cid
    from antiphon.core.ids import ItemId as ItemId
    from antiphon.core.keys import KeyPair as KeyPair, PublicKey as PublicKey
    from antiphon.core.ports import (
        Clock as Clock,
        Randomness as Randomness,
        SystemClock as SystemClock,
        SystemRandomness as SystemRandomness,
    )
    from antiphon.core.reasons import Reason as Reason, code_of as code_of, text_of as text_of
    from antiphon.core.stamp import Stamp as Stamp
    from antiphon.core.timeframe import Causality as Causality, Timeframe as Timeframe
else:
    __getattr__, __dir__ = lazy_exports(__name__)
