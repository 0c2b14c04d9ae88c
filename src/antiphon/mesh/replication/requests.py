"""`Requester`: requests missing ranges of feeds, control feeds first, and blobs; a few at a time, with timeouts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import NamedTuple

from antiphon.core.cid import CID_SIZE, Cid
from antiphon.core.errors import BadEncoding
from antiphon.feed import span as spans
from antiphon.feed.span import Span
from antiphon.mesh.replication.admits import Access
from antiphon.mesh.replication.limits import (
    CIDS_MAX,
    CIDS_START,
    FEEDS_MAX,
    GROUP_SIZE,
    NEVER,
    RANGES_MAX,
    REQUESTS_MAX,
    TIMEOUT_MAX_MS,
)
from antiphon.mesh.replication.message import (
    Answer,
    Blobs,
    Branch,
    Enough,
    Holding,
    More,
    Ranges,
    Request,
    Tips,
    Want,
    WantBlobs,
    WantBranch,
    WantTips,
)
from antiphon.mesh.replication.name_search import NameSearch
from antiphon.mesh.replication.open_requests import OpenRequest, OpenRequests
from antiphon.mesh.replication.range_room import join_ranges
from antiphon.mesh.replication.replica import RangeOutcome, Replica
from antiphon.mesh.replication.session_gate import SessionGate
from antiphon.mesh.replication.timeouts import Timeout

PUSHED, LATE = -1, 0  # no numbers of open requests
_TIPS = b"tips "  # and a feed: the key of a request for the last blocks of its branches


class _Held(NamedTuple):
    """A range that has come, and is not stored yet."""

    span: Span
    number: int  # of its request
    request: OpenRequest | None = None  # if that was open when it came


class Requester:
    """The requesting part of one end of a session. A restart of the other end begins a new one."""

    def __init__(self, replica: Replica, gate: SessionGate, pace: Timeout) -> None:
        self._replica = replica
        self._gate = gate
        self._timeout = pace
        self.theirs: dict[bytes, Holding] = {}
        self._unheld: set[bytes] = set()  # those of which no block is here: others cost no more than what is held
        self._urgent: dict[bytes, None] = {}  # control feeds of which the peer may have blocks that are missing here
        self._open: dict[bytes, None] = {}  # the same for data feeds
        self._shut: dict[bytes, None] = {}  # feeds of which the peer has more blocks, which cannot be taken now
        self._strangers: dict[bytes, bytes] = {}  # control feeds of identities that nobody has named: whose they are
        self._back: dict[bytes, int] = {}  # how many held blocks of a feed to request again, to find its fork
        self._rest: dict[bytes, int] = {}  # late or useless feeds and blobs: when to request again
        self._tried: dict[bytes, tuple[int, int]] = {}  # evidence that was of no use: its cut, and the length held then
        self._lacked: dict[bytes, tuple[int, int]] = {}  # branch blocks that the peer lacks: when to ask again, tries
        self._names = NameSearch(replica, self.theirs)
        self._without: dict[bytes, None] = {}  # blobs that the peer does not have
        self._seeking = False  # some blobs are wanted
        self._blobs_rest_ms = 0
        self._blobs_late = 0
        self._open_requests = OpenRequests(replica.in_flight, pace)
        self._cids_count = CIDS_START
        self._held: list[_Held] = []  # ranges to be stored in one commit
        self._enough: dict[bytes, None] = {}  # feeds that came with announcements and were here, to be sent
        self._seen = (0, 0, 0)  # what `_notice` has seen: the versions of the holdings and of the epoch base, the names
        self.taken = self.taken_blobs = 0

    @property
    def waiting(self) -> int:
        """The number of open requests."""
        return len(self._open_requests)

    def close(self) -> None:
        """Release all open requests."""
        self._open_requests.close()

    def sent(self, now_ms: int) -> None:
        """Note that the requests made until now have left."""
        self._open_requests.sent(now_ms)

    def arriving(self, now_ms: int) -> None:
        """Note that bytes of the other end are coming."""
        self._open_requests.arriving(now_ms)

    # -- holdings of the peer

    def note_holdings(self, holdings: Sequence[Holding]) -> bool:
        """Note the holdings that the peer announces. A repeated or older one changes nothing.

        False if there is no room for some of them: of feeds that are not here, only so many are remembered. The peer
        announces them again later, when some have come.
        """
        self._make_room(len(holdings))
        left_out = False
        for one in holdings:
            known = self.theirs.get(one.feed)
            if known is not None and not _newer(one, known):
                continue
            if known is None and not self._replica.holdings.length(one.feed):
                if len(self._unheld) >= FEEDS_MAX:
                    left_out = True
                    continue
                self._unheld.add(one.feed)
            self.theirs[one.feed] = one
            self._look_at(one.feed)
            self._names.look_at(one.feed)
            for block in [block for block in self._lacked if self._is_of(block, one.feed)]:
                del self._lacked[block]
        self._without.clear()
        self._blobs_rest_ms = 0
        return not left_out

    def note_the_same(self) -> None:
        """Note that the other end holds all that is held here, and nothing else."""
        self.theirs.update((held.feed, held) for held in self._replica.holdings)

    def _make_room(self, count: int) -> None:
        """Forget feeds of strangers, if there is no room for others. The next session hears of them again."""
        self._notice()
        most = len(self._unheld) + count - FEEDS_MAX
        for feed in [*islice(self._strangers, most)] if most > 0 else ():
            for known in (self.theirs, self._shut, self._strangers, self._back, self._rest):
                known.pop(feed, None)
            self._unheld.discard(feed)

    def again(self) -> None:
        """Consider all feeds of the peer again: more of them may be taken than before."""
        for feed in self.theirs:
            self._look_at(feed)

    def _notice(self) -> None:
        """If the holdings here have changed, consider again the feeds that could not be taken."""
        version, *others = self._seen
        now = self._replica.holdings.version, self._replica.base_version, self._replica.known.known_count
        if now == self._seen:
            return
        self._seen = now
        for feed in [*self._shut] if others != [*now[1:]] else ():
            if feed not in self._strangers or self._replica.known.names(self._strangers[feed]):
                self._look_at(feed)
        for _, held in self._replica.holdings.since(version):
            self._unheld.discard(held.feed)
            if held.feed in self.theirs:
                self._look_at(held.feed)

    def _look_at(self, feed: bytes) -> None:
        """Consider a feed: the peer may have blocks of it that are missing here."""
        self._shut.pop(feed, None)
        self._strangers.pop(feed, None)
        (self._urgent if self.theirs[feed].control else self._open)[feed] = None

    def _set_aside(self, feed: bytes) -> None:
        """Stop requesting a feed until the peer or this replica holds more of it."""
        self._urgent.pop(feed, None)
        self._open.pop(feed, None)
        theirs = self.theirs.get(feed)
        if theirs is not None and theirs.length > self._replica.holdings.length(feed):
            self._shut[feed] = None

    # -- requests

    def request(self, now_ms: int) -> tuple[list[Request | More | Enough], int]:
        """Return the requests to send now, and the time at which to call this again even if nothing arrives."""
        self._notice()
        for key in self._open_requests.expire(now_ms):  # meanwhile another peer may get the request
            self._rest[key] = now_ms + self._timeout.timeout_ms // 2
        asked: list[Request | More | Enough] = []
        wake_ms = NEVER
        while len(self._open_requests) < REQUESTS_MAX:
            want, wake_ms = self._want(now_ms)
            if want is None:
                break
            asked.append(want)
        if self._enough:
            asked.append(Enough(tuple(self._enough)[:RANGES_MAX]))
            self._enough.clear()
        asked += self._open_requests.take_more()
        branches, branches_ms = self._want_branches(now_ms)
        tips, tips_ms = self._want_tips(now_ms)
        asked += [*branches, *tips]
        wake_ms = min(wake_ms, branches_ms, tips_ms)
        if len(self._open_requests) < REQUESTS_MAX - 1 and self._gate.takes is Access.WHOLE:
            blobs, blobs_ms = self._want_blobs(now_ms)
            asked += blobs
            wake_ms = min(wake_ms, blobs_ms)
        return asked, min(wake_ms, self._open_requests.until_ms)

    def _want(self, now_ms: int) -> tuple[Want | None, int]:
        ranges: list[tuple[bytes, int]] = []
        forks: list[bytes] = []
        done: list[bytes] = []
        wake_ms = NEVER
        busy = self._open_requests.range_count >= REQUESTS_MAX - 1
        data_ms: int | None = None
        for feed in chain(self._urgent, self._open):
            if feed in self._open:
                if data_ms is None:
                    data_ms = self._data_from_ms(now_ms, len(done) < len(self._urgent))
                if data_ms > now_ms:
                    wake_ms = min(wake_ms, data_ms)
                    break
            until = self._busy_until(feed, now_ms)
            if not self._gate.takes_feed(self.theirs[feed]):
                done.append(feed)
            elif until:
                wake_ms = min(wake_ms, until)
            elif self._wants_fork(feed):
                forks.append(feed)
            elif (first := self._replica.first_missing(self.theirs[feed], self._back.get(feed, 0))) is not None:
                if busy and feed in self._open:  # the last request is left for control feeds
                    self._open_requests.end_oldest()
                    break
                ranges.append((feed, first))
            else:
                done.append(feed)
            if len(ranges) + len(forks) == RANGES_MAX:
                break
        for feed in done:
            self._set_aside(feed)
        if not ranges and not forks:
            return None, wake_ms
        for feed, _ in ranges:
            if feed in self._open:  # behind the others, for the next request
                self._open[feed] = self._open.pop(feed)
        number, size = self._open_requests.open_window((*(feed for feed, _ in ranges), *forks), now_ms)
        return Want(number, size, tuple(ranges), tuple(forks)), wake_ms

    def _data_from_ms(self, now_ms: int, lacks_control: bool) -> int:
        """Return from when on data feeds may be requested: newcomers wait for the last epoch."""
        return self._replica.joining.until(now_ms, lacks_control, fetches=self._replica.fetches_blobs)

    def _busy_until(self, key: bytes, now_ms: int) -> int:
        """Return until when not to request a feed or blob, as it is in flight or the peer was late; 0 if it may be."""
        rest = self._rest.get(key, 0)
        if rest <= now_ms:
            self._rest.pop(key, None)
            rest = 0
        if key in self._open_requests.asked:
            return NEVER
        return max(rest, self._replica.in_flight.until(key, self._open_requests, now_ms) or 0)

    def _wants_fork(self, feed: bytes) -> bool:
        theirs, mine = self.theirs[feed], self._replica.holdings.get(feed)
        if theirs.fork is None or mine is None or mine.length <= theirs.fork:
            return False
        if mine.fork is not None and mine.fork <= theirs.fork:
            return False
        return self._tried.get(feed) != (theirs.fork, mine.length)

    def _want_branches(self, now_ms: int) -> tuple[list[WantBranch], int]:
        """Return requests for blocks that waiting blocks refer to, and that do not come with their feeds."""
        due, wake_ms = self._replica.branches.due(now_ms)
        if self._lacked:
            self._lacked = {key: known for key, known in self._lacked.items() if self._replica.branches.get(key)}
        asked: list[WantBranch] = []
        for block in (*due, *self._names.missing()):
            if len(self._open_requests) == REQUESTS_MAX:
                break
            theirs = self.theirs.get(block.feed)
            if self._gate.takes < (Access.CONTROL if theirs is not None and theirs.control else Access.WHOLE):
                continue
            # A feed that is set aside does not come: the peer may hold its headers alone.
            coming = theirs is not None and theirs.length > block.seq and not (block.apart or block.feed in self._shut)
            if coming and theirs is not None and self._replica.first_missing(theirs, 0) is not None:
                continue
            until = max(self._busy_until(block.key, now_ms), self._lacked.get(block.key, (0, 0))[0])
            if until > now_ms:
                wake_ms = min(wake_ms, until)
            elif not self._names.has_come(block):
                number = self._open_requests.open((block.key,), now_ms, Branch)
                asked.append(WantBranch(number, block.feed, block.seq, block.hash, block.first))
        return asked, wake_ms

    def _want_tips(self, now_ms: int) -> tuple[list[WantTips], int]:
        """Return requests for the branches of forked control feeds, if blocks wait for feeds that no act names."""
        due_ms = self._replica.branches.names_due_ms()
        if due_ms > now_ms or self._gate.takes < Access.CONTROL:
            return [], due_ms
        asked: list[WantTips] = []
        wake_ms = NEVER
        for feed, after in self._names.feeds():
            if len(self._open_requests) == REQUESTS_MAX:
                break
            until = self._busy_until(_TIPS + feed, now_ms)
            if until:
                wake_ms = min(wake_ms, until)
            elif self._gate.takes_feed(self.theirs[feed]):
                asked.append(WantTips(self._open_requests.open((_TIPS + feed,), now_ms, Tips), feed, after))
                self._names.ask(feed)
        return asked, wake_ms

    def _is_of(self, key: bytes, feed: bytes) -> bool:
        block = self._replica.branches.get(key)
        return block is not None and block.feed == feed

    def _want_blobs(self, now_ms: int) -> tuple[list[WantBlobs], int]:
        wanted = self._replica.wanted_blobs()
        if not wanted:
            if self._seeking:
                self._forget_blobs()
            return [], NEVER
        self._seeking = True
        if self._blobs_rest_ms > now_ms:
            return [], self._blobs_rest_ms
        if self._blobs_rest_ms:
            self._without.clear()
            self._blobs_rest_ms = 0
        asked: list[WantBlobs] = []
        cids: list[Cid] = []
        wake_ms = NEVER
        for cid in wanted:
            if cid in self._without:
                continue
            until = self._busy_until(cid, now_ms)
            if until:
                wake_ms = min(wake_ms, until)
                continue
            cids.append(cid)
            if len(cids) == self._cids_count:
                asked.append(WantBlobs(self._open_requests.open(tuple(cids), now_ms, Blobs), tuple(cids)))
                cids = []
                if len(self._open_requests) == REQUESTS_MAX - 1:
                    return asked, wake_ms
        if cids:
            asked.append(WantBlobs(self._open_requests.open(tuple(cids), now_ms, Blobs), tuple(cids)))
        return asked, wake_ms

    def _forget_blobs(self) -> None:
        """Reset the state of blob requests: no blob is missing any more."""
        self._seeking = False
        self._without.clear()
        self._rest = {key: at_ms for key, at_ms in self._rest.items() if len(key) != CID_SIZE}

    # -- answers

    def take(self, answer: Answer, now_ms: int) -> None:
        """Take an answer. What was not requested or does not verify is refused. Ranges wait for `store`."""
        if isinstance(answer, Ranges):
            self._hold_ranges(answer, now_ms)
            return
        self.store(now_ms)
        if isinstance(answer, Branch):
            self._take_branch(answer, now_ms)
        elif isinstance(answer, Tips):
            self._take_tips(answer, now_ms)
        else:
            self._take_blobs(answer, now_ms)

    def _hold_ranges(self, answer: Ranges, now_ms: int) -> None:
        """Take a part of an answer with ranges, which are stored with those of other parts."""
        late = answer.request not in self._open_requests
        request = self._open_requests.take_part(answer, answer.size, now_ms)
        came = [spans.decode(data) for data in answer.spans]
        feeds = [span.feed for span in came]
        if len(set(feeds)) != len(feeds):
            raise BadEncoding("an answer with two ranges of one feed")
        for feed in (*feeds, *(feed for feed, _ in answer.lacks)):
            if feed not in (self.theirs if request is None else request.keys):
                raise BadEncoding(f"an answer with feed {feed.hex()[:8]}, which was not requested")
        if request is None and not late:  # a part before it is lost, or late: it would not link up
            return
        self._held += [_Held(span, LATE if request is None else answer.request, request) for span in came]
        for evidence in answer.forks:
            feed = self._take_fork(evidence)
            if request is not None and feed in request.keys:
                request.keys[feed] = True
        if request is None:
            return
        for feed in feeds:
            request.keys[feed] = True
        for feed, _ in answer.lacks:
            request.keys[feed] = True
            self._set_aside(feed)
        for feed in [feed for feed, some in request.keys.items() if not some] if answer.last else ():
            self._rest[feed] = now_ms + self._timeout.timeout_ms
        if sum(held.span.size for held in self._held) >= GROUP_SIZE:
            self.store(now_ms)

    def take_pushed(self, holdings: Sequence[Holding], pushed: Sequence[bytes]) -> None:
        """Take blocks that came with an announcement, at the next `store`. What does not fit is requested as usual."""
        announced = {held.feed: held for held in holdings}
        came = [spans.decode(data) for data in pushed]
        if len({span.feed for span in came}) != len(came):
            raise BadEncoding("an announcement with two ranges of one feed")
        for span in came:
            if span.feed not in announced:  # there may be more blocks than announced: more are written all the time
                raise BadEncoding(f"an announcement with blocks of feed {span.feed.hex()[:8]}, which it does not name")
        self._held += [_Held(span, PUSHED) for span in came if self._gate.takes_feed(announced[span.feed])]

    def store(self, now_ms: int) -> None:
        """Store the ranges that have come, in one commit if they link up, and consider what to request then."""
        if not self._held:
            return
        held, self._held = self._held, []
        last = {one.span.feed: one for one in held}
        for ranges in join_ranges(one.span for one in held):
            ends = {span.feed: span.end for span in ranges}
            for feed, (outcome, added) in self._replica.take_ranges(ranges, self._gate.device).items():
                self.taken += added
                self._note_outcome(last[feed], outcome, added, ends[feed], now_ms)

    def _note_outcome(self, held: _Held, outcome: RangeOutcome, added: int, end: int, now_ms: int) -> None:
        feed, request = held.span.feed, held.request
        if request is None:
            self._replica.strangers.pop(feed, None)
            if outcome is RangeOutcome.TAKEN:
                self._back.pop(feed, None)
            elif outcome is RangeOutcome.KNOWN and held.number == PUSHED and feed not in self._open_requests.asked:
                self._enough[feed] = None
            return
        if feed in request.freed and outcome is not RangeOutcome.TAKEN:
            return  # it was under way when it became unwanted
        self._settle(feed, outcome, added, end, now_ms)
        if outcome is not RangeOutcome.TAKEN:
            self._open_requests.free(held.number, request, feed, unwanted=True)
        elif feed not in self.theirs or self._replica.holdings.length(feed) >= self.theirs[feed].length:
            self._open_requests.free(held.number, request, feed)

    def _settle(self, feed: bytes, outcome: RangeOutcome, added: int, end: int, now_ms: int) -> None:
        if outcome is RangeOutcome.TAKEN:
            self._back.pop(feed, None)
        elif outcome is RangeOutcome.KNOWN and feed in self._back:  # so large that it ended before the fork
            self._back[feed] = min(self._back[feed], max(0, self._replica.holdings.length(feed) - end))
        elif outcome is RangeOutcome.BRANCH:
            back, held = self._back.get(feed, 0), self._replica.holdings.get(feed)
            if held is None or back >= held.length - held.start:
                self._set_aside(feed)  # only blocks that are pruned here would show the fork
            else:
                self._back[feed] = max(1, 2 * back)
        elif outcome is RangeOutcome.STRANGER:
            self._set_aside(feed)
            if feed in self._replica.strangers:
                self._strangers[feed] = self._replica.strangers.pop(feed)
        elif outcome is RangeOutcome.UNFIT:
            self._set_aside(feed)
        if not added:
            self._rest[feed] = now_ms + (0 if outcome is RangeOutcome.BRANCH else self._timeout.timeout_ms)

    def _take_fork(self, evidence: bytes) -> bytes:
        feed, new = self._replica.take_fork(evidence, self._gate.device)
        self.taken += new
        theirs, mine = self.theirs.get(feed), self._replica.holdings.get(feed)
        if theirs is not None and theirs.fork is not None and mine is not None:
            self._tried[feed] = theirs.fork, mine.length
        return feed

    def _take_branch(self, answer: Branch, now_ms: int) -> None:
        """Take the spans that lead to a wanted block."""
        asked = self._open_requests.take_part(answer, 0, now_ms)
        if asked is None:
            return
        (key,) = asked.keys
        told = self._names.pop(key)
        block, added = self._replica.branches.get(key) or told, 0
        if block is not None and answer.spans:
            came = [spans.decode(data) for data in answer.spans]
            added = self._replica.take_branch(block, came, self._gate.device)
            if told is not None:
                self._names.follow(came)
        elif block is not None and answer.proof:
            added = self._replica.take_proof(block, answer.proof)
        elif told is not None:
            self._names.give_up(told.feed)
        self.taken += added
        if not added:
            tries = self._lacked.get(key, (0, 0))[1]
            self._lacked[key] = now_ms + min(TIMEOUT_MAX_MS, self._timeout.timeout_ms << min(tries, 6)), tries + 1

    def _take_tips(self, answer: Tips, now_ms: int) -> None:
        """Take the last blocks of branches that the peer holds of a feed."""
        asked = self._open_requests.take_part(answer, 0, now_ms)
        if asked is not None:
            (key,) = asked.keys
            self._names.take(key.removeprefix(_TIPS), answer)

    def _take_blobs(self, answer: Blobs, now_ms: int) -> None:
        """Take the blobs of a part of an answer, and note the ones that the peer does not have."""
        request = self._open_requests.take_part(answer, sum(len(data) for _, data in answer.blobs), now_ms)
        for cid in (*(cid for cid, _ in answer.blobs), *answer.lacks):
            if request is not None and cid not in request.keys:
                raise BadEncoding(f"an answer with blob {cid}, which was not requested")
        self.taken_blobs += self._replica.take_blobs(answer.blobs)
        if request is None:
            return
        for cid, _ in answer.blobs:
            request.keys[cid] = True
        for cid in answer.lacks:
            self._without[cid] = None
        if not answer.last:
            return
        if any(request.keys.values()):
            self._blobs_late = 0
            self._cids_count = min(2 * self._cids_count, CIDS_MAX) if all(request.keys.values()) else CIDS_START
        else:
            self._blobs_rest_ms = now_ms + min(TIMEOUT_MAX_MS, self._timeout.timeout_ms << min(self._blobs_late, 6))
            self._blobs_late += 1


def _newer(one: Holding, known: Holding) -> bool:
    """True if a holding is newer than the known one. A feed only grows, is pruned or is cut; nothing is undone."""
    forked = one.fork is not None and (known.fork is None or one.fork < known.fork)
    return one.length > known.length or one.start > known.start or forked or one.branches > known.branches
