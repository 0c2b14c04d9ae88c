"""`File`: an item that holds a file of any size. Its content lies in the blob store, in chunks that are shared.

>>> import antiphon
>>> with antiphon.open("laptop", unprotected=True) as store:
...     party = store.create_party()
...     letter = party.file(b"Dear Ada, ...", name="letter.txt", media_type="text/plain")
...     letter.name, letter.size, letter.read_bytes(5, 8)
('letter.txt', 13, b'Ada')
"""

from __future__ import annotations

import io
import mimetypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

from antiphon.api.copy_blobs import take_blobs
from antiphon.api.items.handle import Handle
from antiphon.api.options import ItemOptions
from antiphon.core.cid import Cid
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob, StoreError, TooLarge
from antiphon.model.file import UNKNOWN_TYPE, FileModel
from antiphon.snapshot import content, tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.content_stream import open_content

if TYPE_CHECKING:
    from antiphon.api.party import Party

#: What a file's content may come from: bytes, a binary stream, or the path of a file.
Source = bytes | bytearray | BinaryIO | str | os.PathLike[str]
READ_SIZE_MAX = 256 << 20  # what `read_bytes` gives at once


class FileOptions(ItemOptions, total=False):
    """What is said of a new file, besides what it holds."""

    media_type: str


class File(Handle):
    """A file. Content, size and media type are one value, the name another: see docs/models/file.md."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What the file is called; where nobody said, the item's display name."""
        return str(self._value["name"]) or self.item.display_name

    @name.setter
    def name(self, name: str) -> None:
        self.item.edit("rename", name)

    @property
    def content(self) -> Cid | None:
        """The CID of what it holds; None as long as it holds nothing."""
        found: Cid | None = self._value["content"]
        return found

    @property
    def size(self) -> int:
        """In bytes, as its writer said."""
        return int(self._value["size"])

    @property
    def media_type(self) -> str:
        """The media type of its content, such as `image/png`; empty if it is not known."""
        return str(self._value["media_type"])

    @property
    def _value(self) -> dict[str, Any]:
        found: dict[str, Any] = self.item.value
        return found

    # -- writing

    def write(self, data: Source, *, name: str | None = None, media_type: str | None = None) -> None:
        """Put another content in place of the one that it has.

        A stream or a file is read in pieces. Chunks that are here already, of this file or another, are kept once.
        """
        guessed, kind = guess_from_path(data)
        kind = media_type or kind or self.media_type or UNKNOWN_TYPE
        if name is None and not self._value["name"]:
            name = guessed or None
        blobs = self.party.processor.blobs
        with blobs.putting():  # so that nobody collects the chunks before the item names them
            cid = store_content(data, self.party)
            self.item.edit("set", cid, content.size_of(cid, blobs), kind, name)

    # -- reading

    def missing(self) -> list[Cid]:
        """The blobs of its content that are not here, to be fetched: asked again until there are none.

        Those that hang on a missing one are not known before that has come.
        """
        cid = self.content
        return [] if cid is None else list(tree.missing(cid, self.party.processor.blobs))

    def fetch(self, source: Blobs) -> int:
        """Take what is missing of its content from another store's blobs; returns how many blobs came."""
        blobs, moved = self.party.processor.blobs, 0
        while taken := take_blobs(source, blobs, self.missing()):
            moved += taken
        return moved

    def open(self) -> BinaryIO:
        """The content as a binary stream, which can be searched. `MissingBlob` says what is to be fetched first."""
        cid = self._complete_content()
        return io.BytesIO() if cid is None else open_content(cid, self.party.processor.blobs)

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` to `end`, some at a time. Only what they lie in has to be here."""
        cid = self.content
        if cid is None:
            return iter(())
        self._check_size(cid)
        return content.pieces(cid, self.party.processor.blobs, start=start, end=end)

    def read_bytes(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` to `end`; of a large file, open it or ask for its `pieces`."""
        if start < 0 or (end is not None and end < start):
            raise InvalidInput(f"file {self.id}: no range of bytes: {start} to {end}")
        if min(self.size, self.size if end is None else end) - start > READ_SIZE_MAX:
            raise TooLarge(f"file {self.id}: more than {READ_SIZE_MAX} bytes are asked for at once; read it in pieces")
        return b"".join(self.pieces(start, end))

    def save_to(self, path: str | os.PathLike[str]) -> Path:
        """Write the content to a file, or into a folder under its name; returns where it is. Whole, or not at all."""
        target = Path(path)
        if target.is_dir():
            if not self._value["name"]:
                raise InvalidInput(f"file {self.id} has no name; say under which it is to be saved")
            target = target / self._value["name"]
        self._complete_content()
        partial = target.with_name(target.name + ".partial")
        try:
            with partial.open("wb") as stream:
                for piece in self.pieces():
                    stream.write(piece)
            partial.replace(target)
        except OSError as error:
            raise StoreError(f"{target} cannot be written: {error.strerror}") from None
        finally:
            partial.unlink(missing_ok=True)
        return target

    def _complete_content(self) -> Cid | None:
        """Its content, once all of that is here."""
        cid = self.content
        if cid is None:
            return None
        lacking = self.missing()
        if lacking:
            raise MissingBlob(
                f"file {self.id}: {len(lacking)} blobs of its content, {lacking[0]} among them, are not here; fetch "
                "what `missing` lists",
                cid=lacking[0],
            )
        self._check_size(cid)
        return cid

    def _check_size(self, cid: Cid) -> None:
        """A peer can say of a content what is not so."""
        found = content.size_of(cid, self.party.processor.blobs)
        if found != self.size:
            raise BadEncoding(
                f"file {self.id}: {self.size} bytes are said, and its content has {found}; its writer was wrong"
            )


def new_file(party: Party, data: Source, **options: Unpack[FileOptions]) -> File:
    """A file with its content, in one batch."""
    guessed, kind = guess_from_path(data)
    kind, name = options.get("media_type") or kind or UNKNOWN_TYPE, options.get("name") or guessed or None
    blobs = party.processor.blobs
    with blobs.putting():  # so that nobody collects the chunks before the item names them
        cid = store_content(data, party)
        with party.processor.batch():
            made = party.create(FileModel.name, type=options.get("type", ""), parent=options.get("parent"))
            made.item.edit("set", cid, content.size_of(cid, blobs), kind, name)
    assert isinstance(made, File)
    return made


def guess_from_path(data: Source) -> tuple[str, str]:
    """The name and the media type that a source tells by itself."""
    path = data if isinstance(data, str | os.PathLike) else None
    if path is None:
        return "", ""
    name = Path(path).name
    return name, mimetypes.guess_type(name)[0] or ""


def store_content(data: Source, party: Party) -> Cid:
    """Put a content into the blob store, in pieces where it comes as a stream."""
    blobs = party.processor.blobs
    if isinstance(data, bytes | bytearray):
        return content.write(bytes(data), blobs)
    if isinstance(data, str | os.PathLike):
        try:
            with Path(data).open("rb") as stream:
                return content.write(stream, blobs)
        except OSError as error:
            raise InvalidInput(f"{data} cannot be read: {error.strerror}") from None
    if not callable(getattr(data, "read", None)):
        raise InvalidInput(f"a file's content is bytes, a binary stream or a path, not {type(data).__name__}")
    return content.write(data, blobs)
