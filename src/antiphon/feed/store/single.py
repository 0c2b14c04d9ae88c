"""One message appended to a feed whose last span is small: the way of every keystroke, kept free of columns and layers.

It writes the very same bytes as `append.build`, and leaves to it whatever is not plain.
"""

from __future__ import annotations

from hashlib import sha256

from antiphon.feed.chain import sign_head
from antiphon.feed.encoder import Append, Written
from antiphon.feed.header import PACK, VERSION
from antiphon.feed.limits import LAMPORT_MAX, SALT_SIZE
from antiphon.feed.span import BLOCK_TAG, Span
from antiphon.feed.store.tables import Tables


def append_single(tables: Tables, append: Append) -> Written | None:
    """Append one message that has seen nothing new; None, with nothing written, where that takes the general way."""
    if append.count != 1 or append.seen:
        return None
    record = tables.record(append.pair.key)
    plain = record.writable and not record.retired and record.length < record.end and record.party == append.party
    plain = plain and record.lamport + 1 < LAMPORT_MAX
    plain = plain and append.expect in (None, (record.length, record.lamport + 1))
    tail = tables.small_tail(record, append.sizes[0] + SALT_SIZE) if plain else None
    if tail is None:
        return None
    lamport, seq, party, feed = record.lamport + 1, record.length, record.party, record.feed
    body = append.salts + append.messages[0]
    digest = sha256(body).digest()
    header = PACK(VERSION, append.kinds[0], 0, seq, lamport, append.created_ms, append.items[0], len(body), digest, 0)
    hash_ = sha256(BLOCK_TAG + party + feed + record.hash + header).digest()
    signature = sign_head(append.pair, party, seq + 1, hash_)
    tables.put_span(
        Span(
            party,
            feed,
            tail.first,
            tail.previous,
            signature,
            tail.headers + header,
            tail.advance,
            tail.bodies + body,
            tail.hashes + hash_,
        )
    )
    tables.put_record(record.extended(seq + 1, hash_, lamport, signature))
    return Written(feed, seq, (lamport,), hash_)
