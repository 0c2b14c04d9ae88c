"""`PartySessions`: a `LinkHost` for one thread, with the replicas of parties and a session for each link and party.

```text
 connected:       link = Link(channel, host, …); host.connect(link)
 on bytes:        host.receive(link, data, now_ms)
                  taken = host.work(now_ms): let the parties of `taken` process, then refresh their replicas
                  an error of either: close the connection, host.disconnect(link)
 on local writes: replica.refresh()
 then, and at the time that `tick` returned:
                  wake_ms = host.tick(now_ms); for each link: write(host.outgoing(link, budget, now_ms))
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from antiphon.core.errors import AntiphonError, LinkSilent, StoreError
from antiphon.mesh.link.limits import BOX_SIZE_MAX
from antiphon.mesh.link.link import Link
from antiphon.mesh.replication.admits import Access
from antiphon.mesh.replication.replica import Replica
from antiphon.mesh.replication.session import Session

_NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class Taken:
    """Blocks and blobs that came over a link and were stored: the party has to process them."""

    link: Link
    party: bytes
    blocks: int
    blobs: int


@dataclass(slots=True)
class _Ends:
    """The sessions of one link, by party."""

    sessions: dict[bytes, Session] = field(default_factory=dict)
    equal: dict[bytes, bytes] = field(default_factory=dict)  # parties without a session, with the digest of both ends


class PartySessions:
    """The parties of one device, and its links to others. `faults` are links whose other end is at fault, or gone."""

    def __init__(self, replicas: Iterable[Replica] = ()) -> None:
        self.faults: dict[Link, AntiphonError] = {}
        self._replicas = {replica.key: replica for replica in replicas}
        self._versions: dict[bytes, int] = {}  # of control states, at the last look
        self._links: dict[Link, _Ends] = {}
        self._inbox: dict[tuple[Link, bytes], list[bytes]] = {}  # messages by link and party
        self._is_due = False
        self._has_room = False

    # -- parties and links

    def follow(self, replica: Replica) -> None:
        """Begin to replicate a party."""
        self._replicas[replica.key] = replica
        self._versions.pop(replica.key, None)

    def unfollow(self, party: bytes) -> None:
        """Stop replicating a party."""
        self._replicas.pop(party, None)
        for link, ends in self._links.items():
            self._close(ends, party)
            link.drop(party)

    def replica(self, party: bytes) -> Replica:
        """Return the replica of a party that is followed."""
        return self._replicas[party]

    def connect(self, link: Link) -> None:
        """Begin to use a link, made with this host."""
        self._links[link] = _Ends()

    def disconnect(self, link: Link) -> None:
        """Forget a link and its sessions: its connection has ended."""
        ends = self._links.pop(link, None)
        for party in list(ends.sessions) if ends is not None else ():
            assert ends is not None
            self._close(ends, party)
        self.faults.pop(link, None)
        self._inbox = {(at, party): waiting for (at, party), waiting in self._inbox.items() if at is not link}

    def links(self) -> list[Link]:
        """The links that are connected."""
        return list(self._links)

    def session(self, link: Link, party: bytes) -> Session | None:
        """Return the session of a party on a link, if it has begun."""
        ends = self._links.get(link)
        return None if ends is None else ends.sessions.get(party)

    @staticmethod
    def _close(ends: _Ends, party: bytes) -> None:
        session = ends.sessions.pop(party, None)
        if session is not None:
            session.close()
        ends.equal.pop(party, None)

    def _begin(self, link: Link, party: bytes) -> Session | None:
        ends, replica = self._links.get(link), self._replicas.get(party)
        if ends is None or replica is None:
            return None
        ends.equal.pop(party, None)
        self._is_due = True
        if party not in ends.sessions:
            ends.sessions[party] = Session(replica, link.device)
        return ends.sessions[party]

    # -- what a link asks

    def proven(self, link: Link) -> None:
        """Nothing but a tick is due: sessions begin when parties are matched."""
        self._is_due = True

    def admitted(self, device: bytes) -> Iterator[bytes]:
        """Yield the parties whose control state admits a device, and those in which a session's gate is open."""
        for party, replica in self._replicas.items():
            admits = replica.admits
            if admits.access(device, ()) > Access.NOTHING or admits.seeks() or self._has_shown(device, party):
                yield party

    def _has_shown(self, device: bytes, party: bytes) -> bool:
        sessions = (
            ends.sessions.get(party) for link, ends in self._links.items() if link.is_open and link.device == device
        )
        return any(session is not None and session.access > Access.NOTHING for session in sessions)

    def held(self) -> Iterable[bytes]:
        """Return all parties that are replicated."""
        return self._replicas

    def digest(self, party: bytes) -> bytes:
        """Return the digest of what is held of a party; zeros where that is the control feeds alone."""
        replica = self._replicas.get(party)
        return (b"" if replica is None else replica.digest()) or _NO_DIGEST

    def matched(self, link: Link, party: bytes, differs: bool) -> None:
        """Begin a session if the ends differ, or this one lacks blobs; else remember when they were equal.

        A newcomer begins one in any case: two of them are equal until one is let in, and then has to show its proof.
        """
        replica, ends = self._replicas.get(party), self._links.get(link)
        if replica is None or ends is None:
            return
        if differs or not replica.digest() or replica.wanted_blobs() or replica.admits.seeks():
            self._begin(link, party)
        elif party not in ends.sessions:
            ends.equal[party] = self.digest(party)

    def unmatched(self, link: Link, party: bytes) -> None:
        """Begin a session: it shows this device's admission."""
        self._begin(link, party)

    def received(self, link: Link, party: bytes, message: bytes, shown: bool) -> None:
        """Keep a message until `work`."""
        self._inbox.setdefault((link, party), []).append(message)
        self._is_due = True

    def has_room(self, link: Link, party: bytes) -> None:
        """Note that sessions of a link may send more."""
        self._has_room = True

    # -- driving

    def receive(self, link: Link, data: bytes, now_ms: int) -> bool:
        """Take bytes of a connection. If the other end is at fault, `faults` has the link.

        Return True if `work` and `tick` have something to do; else only `outgoing` may have.
        """
        self._is_due = False
        if link in self._links and link not in self.faults:
            try:
                link.receive(data, now_ms)
            except AntiphonError as error:
                self.faults[link] = error
            for session in self._links[link].sessions.values():
                session.arriving(now_ms)  # what it waits for may come behind messages of other parties
            self._is_due |= link.is_shown
        return self._is_due

    def work(self, now_ms: int) -> list[Taken]:
        """Let sessions read what has come. Return what they stored.

        An error of a store is raised; the messages that are left are read by the next call.
        """
        taken = []
        while self._inbox:
            link, party = next(iter(self._inbox))
            messages = self._inbox.pop((link, party))
            session = self._begin(link, party)
            if session is None or link in self.faults:
                continue
            try:
                session.receive_all(messages, now_ms)
            except StoreError:
                raise
            except AntiphonError as error:
                self.faults[link] = error
            finally:
                if session.taken or session.taken_blobs:
                    taken.append(Taken(link, party, session.taken, session.taken_blobs))
                    session.taken = session.taken_blobs = 0
        return taken

    def tick(self, now_ms: int) -> int | None:
        """Let links and sessions do what is due, and queue the messages of sessions. Return when to call this again."""
        wakes: list[int | None] = []
        changed = self._look()
        for link, ends in self._links.items():
            if link not in self.faults:  # ticks close the gates of devices that are not admitted any more
                wakes += [session.tick(now_ms) for session in ends.sessions.values()]
        for link in self._links:
            if link in self.faults:
                continue
            if changed:
                link.judge()
            self._fetch(link, now_ms)
            try:
                wakes.append(link.tick(now_ms))
            except LinkSilent as error:
                self.faults[link] = error
        due = [wake_ms for wake_ms in wakes if wake_ms is not None]
        return now_ms if self._inbox else min(due, default=None)

    def _look(self) -> bool:
        """Begin sessions where more is held or wanted than when ends were equal. True if control state has changed."""
        changed = False
        for party, replica in self._replicas.items():
            replica.look()
            version = replica.admits.version()
            changed |= self._versions.get(party) != version
            self._versions[party] = version
        for link, ends in self._links.items():
            for party, digest in list(ends.equal.items()):
                if digest != self.digest(party) or self._replicas[party].wanted_blobs():
                    self._begin(link, party)
        return changed

    def _fetch(self, link: Link, now_ms: int) -> None:
        """Queue what the sessions of a link send, as far as it has room."""
        for party, session in self._links[link].sessions.items():
            if session.has_outgoing:
                room = link.room(party) if link.speaks(party) else BOX_SIZE_MAX  # its gate was opened just now
                messages = session.outgoing(room, now_ms)
                if messages:
                    link.send(party, messages)

    def outgoing(self, link: Link, budget: int, now_ms: int) -> bytes:
        """Return the bytes to write to a link's connection."""
        if link in self.faults:
            return b""
        self._has_room = False
        data = link.outgoing(budget)
        if self._has_room and link in self._links:
            self._fetch(link, now_ms)
        return data
