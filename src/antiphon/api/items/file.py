"""`File`: an item with a file of any size. Its content is in the blob store, in chunks that files share.

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
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob, TooLarge
from antiphon.core.output_file import output_file
from antiphon.core.plain_text import is_plain, plain_text
from antiphon.model.file import UNKNOWN_TYPE, FileModel
from antiphon.snapshot import content, tree
from antiphon.snapshot.blobs import Blobs
from antiphon.snapshot.content_stream import open_content

if TYPE_CHECKING:
    from antiphon.api.party import Party

#: Sources of a file's content: bytes, a binary stream, or the path of a file.
Source = bytes | bytearray | BinaryIO | str | os.PathLike[str]
READ_SIZE_MAX = 256 << 20  # most bytes that `read_bytes` returns
SAVE_SIZE_MAX = 1 << 30  # most bytes that `save_to` writes unless it is told otherwise


class FileOptions(ItemOptions, total=False):
    """Options of `Party.file`."""

    media_type: str


class File(Handle):
    """A file. Content, size and media type are written together; the name is written alone: see docs/models/file.md.

    The content does not travel with the messages: `missing` and `fetch` get it from another store.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name of the file; if it has none, the display name of the item. Assign to it to rename the file."""
        return str(self._value["name"]) or self.item.display_name

    @name.setter
    def name(self, name: str) -> None:
        self.item.edit("rename", name)

    @property
    def content(self) -> Cid | None:
        """The CID of the content; None if nothing was ever written."""
        found: Cid | None = self._value["content"]
        return found

    @property
    def size(self) -> int:
        """The size in bytes, as its writer declared it."""
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
        """Replace the content. `data` is bytes, a binary stream, or the path of a file; streams are read in pieces.

        `name` and `media_type` are kept if they are not given, or guessed from a path. Chunks that are already in the
        store, of this file or of others, are not stored again.
        """
        guessed, kind = guess_from_path(data)
        kind = media_type or kind or self.media_type or UNKNOWN_TYPE
        if name is None and not self._value["name"]:
            name = guessed or None
        blobs = self.party.processor.blobs
        with blobs.putting():  # no garbage collection before the item refers to the chunks
            cid = store_content(data, self.party)
            self.item.edit("set", cid, content.size_of(cid, blobs), kind, name)

    # -- reading

    def missing(self) -> list[Cid]:
        """List the known blobs of the content that are not on this device.

        Blobs below a missing one are not known yet: fetch the listed ones, and call this again until the list is empty.
        """
        cid = self.content
        return [] if cid is None else list(tree.missing(cid, self.party.processor.blobs))

    def fetch(self, source: Blobs) -> int:
        """Copy the missing blobs of the content from another store (`store.manager.blobs`). Return their number."""
        blobs, moved = self.party.processor.blobs, 0
        while taken := take_blobs(source, blobs, self.missing()):
            moved += taken
        return moved

    def open(self) -> BinaryIO:
        """Return the content as a seekable binary stream. `MissingBlob` if a part of it is not on this device."""
        cid = self._complete_content()
        return io.BytesIO() if cid is None else open_content(cid, self.party.processor.blobs)

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes from `start` to `end`, in pieces. Only the blobs of this range must be on this device."""
        cid = self.content
        if cid is None:
            return iter(())
        self._check_size(cid)
        return content.pieces(cid, self.party.processor.blobs, start=start, end=end)

    def read_bytes(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes from `start` to `end`. For a large file, use `open` or `pieces`."""
        if start < 0 or (end is not None and end < start):
            raise InvalidInput(f"file {self.id}: no range of bytes: {start} to {end}")
        if min(self.size, self.size if end is None else end) - start > READ_SIZE_MAX:
            raise TooLarge(f"file {self.id}: more than {READ_SIZE_MAX} bytes in one read; read it in pieces")
        return b"".join(self.pieces(start, end))

    def save_to(self, path: str | os.PathLike[str], *, replace: bool = False, size_max: int = SAVE_SIZE_MAX) -> Path:
        """Write the content to a path, or into a folder under the name of the file. Return the path.

        The name was chosen by a peer. So an existing file is only overwritten with `replace`, and a file that is hidden
        (`.bashrc`), or whose name looks like another, must be named in full. A content of more than `size_max` bytes is
        refused: a few blobs can stand for any number of zeros. The file appears whole or not at all, and only its owner
        can read it.
        """
        target = Path(path)
        if target.is_dir():
            target = target / self._usable_name()
        if self.size > size_max:
            raise TooLarge(f"file {self.id} has {self.size} bytes, more than {size_max}; pass `size_max` to save it")
        self._complete_content()
        with output_file(target, replace=replace) as stream:
            for piece in self.pieces():
                stream.write(piece)
        return target

    def _usable_name(self) -> str:
        """Return the name for a file in a folder of this machine. The model refuses slashes and control characters."""
        name = str(self._value["name"])
        if not name:
            raise InvalidInput(f"file {self.id} has no name; say under which it is to be saved")
        if name.startswith("."):
            raise InvalidInput(f"file {self.id} has the name {name!r} of a hidden file; say under which to save it")
        if not is_plain(name):
            raise InvalidInput(
                f"file {self.id} has the name '{plain_text(name)}', which looks like another; say under which to save "
                "it"
            )
        return name

    def _complete_content(self) -> Cid | None:
        """Return the CID of the content. `MissingBlob` if a part of the content is not on this device."""
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
        """Refuse a content whose size differs from the declared one: a peer can declare anything."""
        found = content.size_of(cid, self.party.processor.blobs)
        if found != self.size:
            raise BadEncoding(f"file {self.id}: its writer declared {self.size} bytes, and its content has {found}")


def new_file(party: Party, data: Source, **options: Unpack[FileOptions]) -> File:
    """Create a file item with its content, in one batch."""
    guessed, kind = guess_from_path(data)
    kind, name = options.get("media_type") or kind or UNKNOWN_TYPE, options.get("name") or guessed or None
    blobs = party.processor.blobs
    with blobs.putting():  # no garbage collection before the item refers to the chunks
        cid = store_content(data, party)
        with party.processor.batch():
            made = party.create(FileModel.name, type=options.get("type", ""), parent=options.get("parent"))
            made.item.edit("set", cid, content.size_of(cid, blobs), kind, name)
    assert isinstance(made, File)
    return made


def guess_from_path(data: Source) -> tuple[str, str]:
    """Return the name and the media type that a path suggests; both empty for other sources."""
    path = data if isinstance(data, str | os.PathLike) else None
    if path is None:
        return "", ""
    name = Path(path).name
    return name, mimetypes.guess_type(name)[0] or ""


def store_content(data: Source, party: Party) -> Cid:
    """Write a content into the blob store. Streams are read in pieces."""
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
