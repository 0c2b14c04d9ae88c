"""All errors of Antiphon. A message says what happened, to which feed, item or party, and what to do about it.

AntiphonError
├── InvalidInput        bytes or arguments from outside that break a format or a bound
│   ├── BadEncoding     bytes that are no canonical encoding of the structure named
│   ├── TooLarge        a size above its limit
│   ├── ChannelFault    bytes broke an encrypted channel to another device; the channel has ended
│   ├── InvalidMutation a mutation that its model refuses
│   └── ItemForked      the item continues as another one; names that
├── RefusedBlocks       blocks from a peer that do not verify; none was stored
│   ├── BrokenChain     hashes or positions do not link up
│   ├── BadSignature    a head or credential is not signed by the key that it names
│   └── Equivocation    the feed's writer signed two histories; carries the evidence
├── StoreError          a store on this machine cannot do the operation
│   ├── CorruptBlock    stored bytes have changed; names feed and seq
│   ├── DamagedStore    a file of a store is cut short, or is not what was written; names the file
│   ├── DiskFull        the disk has no room; what was acknowledged is kept
│   ├── DamagedTables   tables of the pipeline were changed by another program, or cannot be read
│   ├── StoreLocked     another process writes this store
│   ├── StoreClosed     the store was closed
│   ├── UnknownFeed     the store holds no such feed
│   ├── MissingBlocks   the blocks are pruned, or were not received
│   ├── FeedRetired     the feed must not be written any more (ended, or restored from a backup)
│   ├── MovedOn         the feed has other blocks than the writer expected; nothing was written
│   ├── MissingBlob     a blob is not in this store
│   ├── DamagedBlob     a stored blob does not match its CID
│   ├── DamagedItems    the item store's bytes have changed; it is rebuilt from the feeds
│   ├── UnknownItem     the party has no such item, or it was not received
│   ├── UnknownParty    this device does not hold that party
│   ├── UnknownModel    no code for this model is installed here
│   └── PartyPaused     the party is paused, closed or deleted here
├── LinkSilent          the other device does not answer any more; dial it again
├── KeyStoreError       keys cannot be read or kept
│   ├── WrongPassphrase the passphrase does not open the key store
│   └── UnknownKey      no such key is held
└── NotAuthorised       the party's control state does not permit the act
"""

from __future__ import annotations

from antiphon.core.reasons import Reason


class AntiphonError(Exception):
    """Anything that Antiphon refuses or cannot do. Catch this to catch all of them."""


class InvalidInput(AntiphonError, ValueError):
    """An argument or bytes break a format or a bound. Check their source; nothing was changed."""


class BadEncoding(InvalidInput):
    """Bytes are no canonical encoding of the structure. Ask the sender again; do not retry the same bytes."""


class TooLarge(InvalidInput):
    """A size is above its limit. Split the value, or keep large content in blobs."""


class ChannelFault(InvalidInput):
    """Bytes broke an encrypted channel, at the other end or on the way. Drop the connection; connect again later."""


class InvalidMutation(InvalidInput):
    """A model refuses a mutation. One from a peer is listed in the quarantine, and changes nothing else."""


class ItemForked(InvalidInput):
    """An item was forked, and is written no more. Write to the item `to`, which it continues as."""

    def __init__(self, message: str, *, to: bytes) -> None:
        super().__init__(message)
        self.to = to


class RefusedBlocks(AntiphonError):
    """Blocks of a peer do not verify. None was stored as part of the feed; see the quarantine."""

    code = Reason.CHAIN  # the stable code of the refusal

    def __init__(
        self, message: str, *, feed: bytes | None = None, seq: int | None = None, code: Reason | None = None
    ) -> None:
        super().__init__(message)
        self.feed = feed
        self.seq = seq
        if code is not None:
            self.code = code


class BrokenChain(RefusedBlocks):
    """Positions or hashes do not link up. Ask another peer for the same range."""


class BadSignature(RefusedBlocks):
    """A signature does not verify under its key. Ask another peer; distrust this sender."""

    code = Reason.SIGNATURE


class Equivocation(RefusedBlocks):
    """The feed's writer signed two contradicting histories. The evidence is kept; the feed is cut for everyone."""

    code = Reason.FORK

    def __init__(self, message: str, *, feed: bytes, seq: int, evidence: bytes) -> None:
        super().__init__(message, feed=feed, seq=seq)
        self.evidence = evidence


class StoreError(AntiphonError):
    """A store on this machine cannot do the operation."""


class CorruptBlock(StoreError):
    """Stored bytes have changed. Run `antiphon doctor --repair`, then sync; the disk may be failing."""

    def __init__(self, message: str, *, feed: bytes, seq: int) -> None:
        super().__init__(message)
        self.feed = feed
        self.seq = seq


class DamagedStore(StoreError):
    """A file of a store is cut short, or is not what was written. `antiphon verify` says what else is wrong."""

    def __init__(self, message: str, *, file: str) -> None:
        super().__init__(message)
        self.file = file


class DiskFull(StoreError):
    """The disk has no room. What was acknowledged is kept: free some space, and try again."""


class DamagedTables(StoreError, BadEncoding):
    """Tables of the pipeline were changed by another program, or cannot be read. `run --full` writes them again."""


class StoreLocked(StoreError):
    """Another process writes this store. Stop it, or open the store read-only."""


class StoreClosed(StoreError):
    """The store was closed. Open it again."""


class UnknownFeed(StoreError, KeyError):
    """The store holds no such feed. Create it, or ingest a range of it first."""

    __str__ = Exception.__str__


class MissingBlocks(StoreError):
    """The blocks are pruned, or were not received. `bounds` says which are held; a peer may have the others."""


class FeedRetired(StoreError):
    """The feed must not be written any more. Open a new feed; readers of the old one lose nothing."""


class MovedOn(StoreError):
    """The feed or its timeframe has grown, so a message would not get the expected seq and lamport; try again."""


class MissingBlob(StoreError, KeyError):
    """The store does not hold the blob. Fetch it from a peer or a CAR file, and put it."""

    __str__ = Exception.__str__

    def __init__(self, message: str, *, cid: bytes) -> None:
        super().__init__(message)
        self.cid = cid


class DamagedBlob(StoreError):
    """A stored blob does not match its CID. It counts as missing from now on: fetch it again, and put it."""

    def __init__(self, message: str, *, cid: bytes) -> None:
        super().__init__(message)
        self.cid = cid


class DamagedItems(StoreError, BadEncoding):
    """Bytes in an item store have changed. The store is rebuilt from the feeds: try again."""


class UnknownItem(StoreError, KeyError):
    """The party has no such item: it never existed, was not received, or is void and nobody else has built on it."""

    __str__ = Exception.__str__


class UnknownParty(StoreError, KeyError):
    """This device does not hold that party. Join it with an invitation, or fetch its blocks from a peer."""

    __str__ = Exception.__str__


class UnknownModel(StoreError, KeyError):
    """No code for this model or version is installed. The item's messages are safe; install it, and open it again."""

    __str__ = Exception.__str__


class PartyPaused(StoreError):
    """The party is paused, closed or deleted here. Resume it, or open it again."""


class LinkSilent(AntiphonError):
    """The device at the other end of a link does not answer. Close the connection, and dial again."""


class KeyStoreError(AntiphonError):
    """Keys cannot be read or kept."""


class WrongPassphrase(KeyStoreError):
    """The passphrase does not open the key store. Try again; without it only the recovery phrase helps."""


class UnknownKey(KeyStoreError, KeyError):
    """No such key is held here. List the keys, or recover the identity from its phrase."""

    __str__ = Exception.__str__


class NotAuthorised(AntiphonError):
    """The party's control state does not permit this. Ask an owner of the party."""
