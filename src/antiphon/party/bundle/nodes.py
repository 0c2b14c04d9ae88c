"""The nodes of a bundle. The root names the party, its snapshot, its feeds and its files; more feeds are in pages.

>>> feed = BundleFeed(b"f" * 32, control=True, first=0, length=1, lists=(Cid.of(b"list", DAG_CBOR),))
>>> root = BundleRoot(b"p" * 32, b"f" * 32, None, (feed,))
>>> BundleRoot.decode(root.encode()) == root
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from antiphon.core.cid import BLOB_SIZE_MAX, DAG_CBOR, Cid
from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.core.keys import KEY_SIZE
from antiphon.snapshot.cbor import CborReader, array, field_order, link, mapping, optional_link, raw, text, uint

FORMAT = "antiphon.bundle.v1"
PAGE_SIZE = 1 << 20  # a page of feeds ends with the first feed that reaches it; the root has the first page
PAGES_MAX = 65_536  # beside the first
LISTS_MAX = 1_024  # of one feed, and of files
LINKS_MAX = 16_384  # in one list
LENGTH_MAX = (1 << 63) - 1
_LIST = "list"
_FEEDS = "feeds"
_FIELDS = tuple(field_order(("format", "party", "genesis", "snapshot", _FEEDS, "files", "more")))


@dataclass(frozen=True, slots=True)
class BundleFeed:
    """The blocks [first, length) of a feed, and those of other branches that others refer to, as lists of spans."""

    feed: bytes
    control: bool
    first: int
    length: int
    lists: tuple[Cid, ...]
    branches: tuple[Cid, ...] = ()

    @property
    def order(self) -> tuple[bool, bytes]:
        """Sort key: control feeds first, then by feed key."""
        return not self.control, self.feed

    def problem(self) -> str:
        """Return what is wrong with this entry; "" if nothing is."""
        if len(self.feed) != KEY_SIZE:
            return "a feed's key has 32 bytes"
        if not 0 <= self.first <= self.length <= LENGTH_MAX or (self.control and self.first):
            return f"feed {self.feed.hex()[:8]} with the blocks from {self.first} to {self.length}"
        if max(len(self.lists), len(self.branches)) > LISTS_MAX or (self.first < self.length) != bool(self.lists):
            return f"feed {self.feed.hex()[:8]} with {len(self.lists)} lists"
        return ""

    def encode(self) -> bytes:
        """Canonical bytes: a DAG-CBOR array."""
        head = array(6) + raw(self.feed) + uint(self.control) + uint(self.first) + uint(self.length)
        return head + b"".join(array(len(found)) + b"".join(map(link, found)) for found in (self.lists, self.branches))

    @classmethod
    def read(cls, reader: CborReader) -> BundleFeed:
        """Read one entry of the root's list of feeds."""
        if reader.array() != 6:
            raise BadEncoding("bundle: a feed is a key, a kind, two numbers, and two arrays of lists")
        feed, control, first, length = reader.raw(), reader.uint(), reader.uint(), reader.uint()
        if control > 1:
            raise BadEncoding(f"bundle: feed {feed.hex()[:8]} is of the kind {control}")
        return cls(feed, bool(control), first, length, _links(reader, LISTS_MAX), _links(reader, LISTS_MAX))


@dataclass(frozen=True, slots=True)
class BundleRoot:
    """The root node of a bundle."""

    party: bytes
    genesis: bytes  # the feed that the party begins with
    snapshot: Cid | None  # of the last final epoch
    feeds: tuple[BundleFeed, ...]  # the first page of them
    files: tuple[Cid, ...] = ()  # lists of contents
    more: tuple[Cid, ...] = ()  # the other pages of feeds

    def __post_init__(self) -> None:
        if problem := self._problem():
            raise InvalidInput(f"bundle of party {self.party.hex()[:8]}: {problem}")

    def _problem(self) -> str:
        if len(self.party) != KEY_SIZE or len(self.genesis) != KEY_SIZE:
            return "a key has 32 bytes"
        if self.snapshot is not None and self.snapshot.codec != DAG_CBOR:
            return f"{self.snapshot} is the CID of no snapshot"
        if len(self.more) > PAGES_MAX or len(self.files) > LISTS_MAX:
            return f"{len(self.more)} pages of feeds and {len(self.files)} lists of files are too many"
        if len(set(self.files)) != len(self.files):
            return "a list of files stands in it twice"
        if len(set(self.more)) != len(self.more):
            return "a page of feeds stands in it twice"
        if any(found.codec != DAG_CBOR for found in (*self.files, *self.more)):
            return "a list is no raw blob"
        return problem_of(self.feeds) if self.more else self.problem_with(self.feeds)

    def problem_with(self, feeds: Sequence[BundleFeed]) -> str:
        """Return what is wrong with these feeds, of all pages; "" if nothing is."""
        if not any(feed.control and feed.feed == self.genesis for feed in feeds):
            return "its first feed is not in it"
        return problem_of(feeds)

    def encode(self) -> bytes:
        """Canonical bytes: a DAG-CBOR map."""
        data = mapping(
            {
                "format": text(FORMAT),
                "party": raw(self.party),
                "genesis": raw(self.genesis),
                "snapshot": optional_link(self.snapshot),
                _FEEDS: _array_of(self.feeds),
                "files": array(len(self.files)) + b"".join(map(link, self.files)),
                "more": array(len(self.more)) + b"".join(map(link, self.more)),
            }
        )
        if len(data) > BLOB_SIZE_MAX:
            raise TooLarge(f"bundle of party {self.party.hex()[:8]}: its root would have {len(data)} bytes")
        return data

    @classmethod
    def decode(cls, data: bytes) -> BundleRoot:
        """Decode a root. Bytes that are not its canonical encoding are refused."""
        reader = CborReader(data, "root of a bundle")
        reader.fields(_FIELDS)
        found: dict[str, object] = {}
        read: dict[str, Callable[[], object]] = {
            "format": reader.text,
            "party": reader.raw,
            "genesis": reader.raw,
            "snapshot": reader.optional_link,
            _FEEDS: lambda: _read_feeds(reader),
            "files": lambda: _links(reader, LISTS_MAX),
            "more": lambda: _links(reader, PAGES_MAX),
        }
        for name in _FIELDS:
            reader.field(name)
            found[name] = read[name]()
        reader.done()
        if found.pop("format") != FORMAT:
            raise BadEncoding(f"root of a bundle: not of the format {FORMAT}; a newer Antiphon may read it")
        return cls(**found)  # type: ignore[arg-type]


def problem_of(feeds: Sequence[BundleFeed]) -> str:
    """Return what is wrong with feeds that follow each other in a bundle; "" if nothing is."""
    orders = [feed.order for feed in feeds]
    if orders != sorted(orders) or len({feed.feed for feed in feeds}) != len(orders):
        return "feeds ascend, control feeds first, each once"
    if any(found.codec != DAG_CBOR for feed in feeds for found in (*feed.lists, *feed.branches)):
        return "a list is no raw blob"
    return next((problem for feed in feeds if (problem := feed.problem())), "")


def pages(feeds: Sequence[BundleFeed]) -> Iterator[tuple[BundleFeed, ...]]:
    """Yield feeds in pages, of which the root has the first. There is one even without feeds."""
    page: list[BundleFeed] = []
    size = 0
    for feed in feeds:
        if size >= PAGE_SIZE:
            yield tuple(page)
            page, size = [], 0
        page.append(feed)
        size += len(feed.encode())
    yield tuple(page)


def encode_page(feeds: Sequence[BundleFeed]) -> bytes:
    """Encode one page of feeds: ["feeds", [feed, …]]."""
    return array(2) + text(_FEEDS) + _array_of(feeds)


def decode_page(data: bytes) -> tuple[BundleFeed, ...]:
    """Decode one page of feeds; an empty one is refused."""
    reader = CborReader(data, "page of a bundle")
    if reader.array() != 2 or reader.text() != _FEEDS:
        raise BadEncoding("page of a bundle: it is none")
    found = _read_feeds(reader)
    reader.done()
    if not found:
        raise BadEncoding("page of a bundle: it is empty")
    return found


def _array_of(feeds: Sequence[BundleFeed]) -> bytes:
    return array(len(feeds)) + b"".join(feed.encode() for feed in feeds)


def _read_feeds(reader: CborReader) -> tuple[BundleFeed, ...]:
    return tuple(BundleFeed.read(reader) for _ in range(reader.array()))  # no more than there are bytes for


def encode_list(links: Sequence[Cid]) -> bytes:
    """Encode one list of links: ["list", [link, …]]. A feed, or the files, may have several lists."""
    if not 0 < len(links) <= LINKS_MAX:
        raise InvalidInput(f"a list of a bundle has 1 to {LINKS_MAX} links, not {len(links)}")
    return array(2) + text(_LIST) + array(len(links)) + b"".join(map(link, links))


def decode_list(data: bytes) -> tuple[Cid, ...]:
    """Decode one list of links; an empty list is refused."""
    reader = CborReader(data, "list of a bundle")
    if reader.array() != 2 or reader.text() != _LIST:
        raise BadEncoding("list of a bundle: it is none")
    found = _links(reader, LINKS_MAX)
    reader.done()
    if not found:
        raise BadEncoding("list of a bundle: it is empty")
    return found


def lists(links: Sequence[Cid]) -> Iterator[bytes]:
    """Encode links as lists of at most `LINKS_MAX` each."""
    return (encode_list(links[start : start + LINKS_MAX]) for start in range(0, len(links), LINKS_MAX))


def _count(reader: CborReader, most: int) -> int:
    count = reader.array()
    if count > most:
        raise BadEncoding(f"bundle: {count} entries, at most {most} are allowed")
    return count


def _links(reader: CborReader, most: int) -> tuple[Cid, ...]:
    return tuple(reader.link() for _ in range(_count(reader, most)))
