"""`BlobScope`: which blobs belong to the final epochs of a party.

All parties of a peer share one blob store, and a CID is no secret: whoever holds the same file knows it. So a session
gives only blobs that can be reached from snapshots of its party that this device stands on: it has recomputed them, or
has taken them from the attesters. Items can name any CID, so what they name does not count. Attesters that lie together
can link any CID into a snapshot that a joiner takes from them. So a node counts only once it was read and is a part of
snapshots: the snapshot of another party, whose CID stands in control feeds, is none.
"""

from __future__ import annotations

from collections.abc import Iterable

from antiphon.core.cid import RAW, Cid
from antiphon.core.errors import DamagedBlob, InvalidInput, MissingBlob
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.walk import links


class BlobScope:
    """A set of CIDs that grows on demand: nodes are read until the requested CID is found, each node once.

    Snapshots share most of their nodes, so the next epoch costs its new nodes only.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._roots: set[Cid] = set()
        self._reached: set[Cid] = set()  # chunks that are linked, and nodes that were read
        self._linked: set[Cid] = set()  # all that is linked
        self._unread: list[Cid] = []  # linked nodes that were not read yet
        self._lacking: list[Cid] = []  # the same, and the blob was missing
        self._arrived = False  # blobs may have arrived since the missing ones were looked for

    def arrived(self) -> None:
        """Note that blobs may have arrived. Without that, a request for a foreign blob costs one look into the set."""
        self._arrived = True

    def reaches(self, cid: Cid, roots: Iterable[Cid]) -> bool:
        """True if a blob is one of these snapshots, or a part of one, as far as they are held here."""
        for root in roots:
            if root not in self._roots:
                self._roots.add(root)
                self._reached.add(root)
                self._unread.append(root)
        if cid in self._reached or self._seek(cid):
            return True
        if self._lacking and self._arrived:
            self._arrived = False
            missing = set(self._blobs.missing(self._lacking))
            self._unread = [node for node in self._lacking if node not in missing]
            self._lacking = [node for node in self._lacking if node in missing]
        return self._seek(cid)

    def _link(self, cid: Cid) -> None:
        if cid.codec == RAW:
            self._reached.add(cid)
        elif cid not in self._linked:
            self._linked.add(cid)
            self._unread.append(cid)

    def _seek(self, cid: Cid) -> bool:
        """Read nodes until a CID is found."""
        while self._unread:
            node = self._unread.pop()
            try:
                for found in links(node, self._blobs, part=node not in self._roots):
                    self._link(found)
                self._reached.add(node)
            except (MissingBlob, DamagedBlob):
                self._lacking.append(node)
            except InvalidInput:  # it is no node: it is not given, and nothing is below it
                continue
            if cid in self._reached:
                return True
        return False
