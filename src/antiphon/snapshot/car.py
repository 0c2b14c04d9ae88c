"""CAR files (version 1): blobs in one file, for any IPLD tool. Each blob is verified when it is read.

>>> from io import BytesIO
>>> from antiphon.snapshot.blobs import MemoryBlobs
>>> here, there, file = MemoryBlobs(), MemoryBlobs(), BytesIO()
>>> cid = here.put(b"hello")
>>> write_car(file, [cid], [cid], here)
1
>>> read_car(BytesIO(file.getvalue()), there) == [cid], there.get(cid)
(True, b'hello')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from antiphon.core.cid import BLOB_SIZE_MAX, CID_SIZE, Cid
from antiphon.core.errors import BadEncoding, InvalidInput, TooLarge
from antiphon.snapshot.blobs import Blobs, check_blob
from antiphon.snapshot.cbor import CborReader, array, link, mapping, uint
from antiphon.snapshot.limits import BATCH_COUNT_MAX, BATCH_SIZE_MAX, CAR_ROOTS_MAX
from antiphon.snapshot.walk import walk

_HEADER_SIZE_MAX = 64 + CAR_ROOTS_MAX * 48
_SECTION_SIZE_MAX = CID_SIZE + BLOB_SIZE_MAX
_VARINT_SIZE_MAX = 4


def export(roots: Iterable[Cid], blobs: Blobs, stream: BinaryIO) -> int:
    """Write all blobs that the roots lead to, each once, roots first. Return their number."""
    tops = list(dict.fromkeys(roots))
    seen: set[Cid] = set()
    below = chain.from_iterable(walk(root, blobs, seen=seen) for root in tops)
    return write_car(stream, tops, chain(tops, below), blobs)


def write_car(stream: BinaryIO, roots: Iterable[Cid], cids: Iterable[Cid], blobs: Blobs) -> int:
    """Write a file with these roots and blobs, each blob once. Return their number."""
    stream.write(encode_header(list(roots)))
    written: set[Cid] = set()
    for cid in cids:
        if cid not in written:
            written.add(cid)
            stream.write(encode_section(cid, blobs.get(cid)))
    return len(written)


def encode_section(cid: Cid, data: bytes) -> bytes:
    """Encode a blob as a section of a file."""
    return _varint(CID_SIZE + len(data)) + cid + data


def read_car(stream: BinaryIO, blobs: Blobs) -> list[Cid]:
    """Put all blobs of a file into a store. Return the roots of the file, which need not be among the blobs.

    Blobs are put in batches: if the file is damaged, the blobs before the damage are kept. Each matches its CID.
    """
    roots = read_header(stream)
    pairs: list[tuple[Cid, bytes]] = []
    size = 0
    for cid, data in sections(stream):
        pairs.append((cid, data))
        size += len(data)
        if len(pairs) >= BATCH_COUNT_MAX or size >= BATCH_SIZE_MAX:
            blobs.put_all(pairs)
            pairs, size = [], 0
    blobs.put_all(pairs)
    return roots


def encode_header(roots: list[Cid]) -> bytes:
    if not 0 < len(roots) <= CAR_ROOTS_MAX:
        raise InvalidInput(f"a CAR file has 1 to {CAR_ROOTS_MAX} roots, not {len(roots)}")
    fields = {"roots": array(len(roots)) + b"".join(map(link, roots)), "version": uint(1)}
    header = mapping(fields)
    return _varint(len(header)) + header


def read_header(stream: BinaryIO) -> list[Cid]:
    """Read the roots of a file; the stream is then at its first blob."""
    size = _read_varint(stream)
    if size is None:
        raise BadEncoding("CAR file: it is empty")
    if size > _HEADER_SIZE_MAX:
        raise TooLarge(f"CAR file: a header of {size} bytes, at most {_HEADER_SIZE_MAX} are allowed")
    reader = CborReader(_read(stream, size), "header of a CAR file")
    reader.fields(("roots", "version"))
    count = reader.field("roots").array()
    if not 0 < count <= CAR_ROOTS_MAX:
        raise BadEncoding(f"CAR file: {count} roots, 1 to {CAR_ROOTS_MAX} are allowed")
    roots = [reader.link() for _ in range(count)]
    if reader.field("version").uint() != 1:
        raise BadEncoding("CAR file: only version 1 is read")
    reader.done()
    return roots


def sections(stream: BinaryIO) -> Iterator[tuple[Cid, bytes]]:
    """Yield the blobs of a file after its header, each verified; a CID may come twice."""
    while (size := _read_varint(stream)) is not None:
        if not CID_SIZE <= size <= _SECTION_SIZE_MAX:
            raise TooLarge(f"CAR file: a section of {size} bytes, {CID_SIZE} to {_SECTION_SIZE_MAX} are allowed")
        cid = Cid(_read(stream, CID_SIZE))
        data = _read(stream, size - CID_SIZE)
        check_blob(cid, data)
        yield cid, data


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _read_varint(stream: BinaryIO) -> int | None:
    """Read a number in its shortest form; None at the end of the stream."""
    number = 0
    for index in range(_VARINT_SIZE_MAX):
        byte = stream.read(1)
        if not byte and not index:
            return None
        if not byte:
            break
        number |= (byte[0] & 0x7F) << (7 * index)
        if byte[0] < 0x80:
            if index and not byte[0]:
                break
            return number
    raise BadEncoding("CAR file: a length that is cut off, too long, or not in its shortest form")


def _read(stream: BinaryIO, size: int) -> bytes:
    """Read exactly `size` bytes; a stream may return fewer at a time."""
    parts: list[bytes] = []
    left = size
    while left and (part := stream.read(left)):
        parts.append(part)
        left -= len(part)
    if left:
        raise BadEncoding(f"CAR file: it ends {left} bytes too early")
    return b"".join(parts)
