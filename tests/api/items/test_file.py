"""Files: content of any size in the blob store, streamed in and out, kept once, queried like other items."""

from __future__ import annotations

import io
import random
import stat
import tracemalloc
from pathlib import Path

import pytest
from tests.api.conftest import blobs

import antiphon
from antiphon import File, Store, prop
from antiphon.core import Cid
from antiphon.core.errors import BadEncoding, InvalidInput, MissingBlob, StoreError, TooLarge

LARGE = random.Random(5).randbytes(1_500_000)


def test_a_file_from_bytes_a_stream_and_a_path(store: Store, tmp_path: Path) -> None:
    party = store.create_party()
    path = tmp_path / "photo.jpg"
    path.write_bytes(LARGE)
    made = [party.file(LARGE), party.file(io.BytesIO(LARGE)), party.file(path), party.file(str(path))]
    assert {file.content for file in made} == {made[0].content}
    assert [file.name for file in made] == ["", "", "photo.jpg", "photo.jpg"]
    assert [file.media_type for file in made] == ["application/octet-stream"] * 2 + ["image/jpeg"] * 2
    assert made[2].size == len(LARGE)
    assert isinstance(party.item(made[0].id), File)


def test_it_is_read_whole_in_part_and_as_a_stream(store: Store, tmp_path: Path) -> None:
    file = store.create_party().file(LARGE, name="a file")
    assert file.read_bytes() == LARGE
    assert file.read_bytes(100_000, 100_010) == LARGE[100_000:100_010]
    assert file.read_bytes(len(LARGE) - 3, len(LARGE) + 10) == LARGE[-3:]
    assert b"".join(file.pieces(7)) == LARGE[7:]
    with file.open() as stream:
        assert stream.read(10) == LARGE[:10]
        assert stream.seek(-10, io.SEEK_END) == len(LARGE) - 10
        assert stream.read() == LARGE[-10:]
        assert stream.seek(500_000) == 500_000
        assert stream.read(300_000) == LARGE[500_000:800_000]
        assert stream.seek(10**9) == 10**9
        assert stream.read() == b""
    assert file.save_to(tmp_path / "saved").read_bytes() == LARGE
    assert file.save_to(tmp_path) == tmp_path / "a file"
    with pytest.raises(InvalidInput, match="no range"):
        file.read_bytes(5, 4)


def test_an_empty_file_and_one_without_content(store: Store, tmp_path: Path) -> None:
    party = store.create_party()
    empty, bare = party.file(), party.create("antiphon/file", name="shown")
    assert isinstance(bare, File)
    assert (empty.read_bytes(), empty.size, empty.missing()) == (b"", 0, [])
    assert (bare.read_bytes(), bare.content, bare.missing(), bare.name) == (b"", None, [], "shown")
    with bare.open() as stream:
        assert stream.read() == b""
    with pytest.raises(InvalidInput, match="has no name"):
        bare.save_to(tmp_path)


def test_content_is_replaced_and_chunks_are_shared(store: Store) -> None:
    party = store.create_party()
    file = party.file(LARGE, name="one.bin", media_type="image/png")
    before = blobs(store).size
    party.file(LARGE)
    assert blobs(store).size == before, "the same content is kept once"
    file.write(LARGE[:700_000] + b"!" + LARGE[700_000:])
    assert blobs(store).size - before < 500_000, "so is most of one that differs in a byte"
    assert (file.name, file.media_type, file.size) == ("one.bin", "image/png", len(LARGE) + 1)
    file.write(b"new", name="two.txt", media_type="text/plain")
    assert (file.name, file.media_type, file.read_bytes()) == ("two.txt", "text/plain", b"new")
    file.name = "three.txt"
    assert file.name == "three.txt"


def test_memory_stays_small(store: Store, tmp_path: Path) -> None:
    class Much(io.RawIOBase):
        left = 60 << 20

        def read(self, size: int = -1) -> bytes:
            count = min(size, self.left)
            self.left -= count
            return random.Random(self.left).randbytes(count)

    party = store.create_party()
    party.file(b"the stores make room for themselves")
    tracemalloc.start()
    file = party.file(Much())  # type: ignore[arg-type]
    file.save_to(tmp_path / "much")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "much").stat().st_size == 60 << 20
    assert peak < 20 << 20


def test_what_is_not_here_is_named(store: Store, tmp_path: Path) -> None:
    file = store.create_party().file(LARGE)
    lost = [cid for cid in blobs(store) if cid != file.content][:2]
    blobs(store).delete(lost)
    assert set(file.missing()) == set(lost)
    for attempt in (file.open, lambda: file.save_to(tmp_path / "x")):
        with pytest.raises(MissingBlob, match="2 blobs of its content") as caught:
            attempt()
        assert caught.value.cid in lost
    with pytest.raises(MissingBlob):
        file.read_bytes()
    assert file.content is not None
    blobs(store).delete([file.content])
    assert file.missing() == [file.content]


def test_what_a_peer_says_of_a_content_is_not_believed(store: Store) -> None:
    party = store.create_party()
    file = party.file(b"hello")
    file.edit("set", bytes(Cid.of(b"hello")), 7)
    with pytest.raises(BadEncoding, match="its writer declared 7 bytes, and its content has 5"):
        file.read_bytes()
    file.edit("set", bytes(Cid.of(b"hello")), 1 << 40)
    with pytest.raises(TooLarge, match="in pieces"):
        file.read_bytes()


def test_what_is_no_content_is_refused(store: Store, tmp_path: Path) -> None:
    party = store.create_party()
    count = len(party.query())
    for data in (5, None, io.StringIO("text"), tmp_path / "nothing"):
        with pytest.raises(InvalidInput):
            party.file(data)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no slash"):
        party.file(b"", name="../etc/passwd")
    assert len(party.query()) == count
    with pytest.raises(StoreError, match="cannot be written"):
        party.file(b"x").save_to(tmp_path / "no" / "folder")


def test_files_are_queried_observed_undone_and_exchanged(store: Store, tmp_path: Path) -> None:
    party = store.create_party("Household")
    file = party.file(b"12345", name="five.txt", media_type="text/plain", type="scan")
    party.file(b"123456789", name="nine.txt")
    assert [found.id for found in party.query(type="scan")] == [file.id]
    assert [found.id for found in party.query(prop("size") < 6)] == [file.id]
    assert [found.id for found in party.query(prop("name") == "five.txt")] == [file.id]
    seen: list[int] = []
    stop = file.observe(lambda one: seen.append(one.size))
    undo = party.undo_stack()
    file.write(b"1234567")
    undo.undo()
    undo.close()
    stop()
    assert (seen, file.read_bytes()) == ([7, 5], b"12345")
    with antiphon.open(tmp_path / "other", unprotected=True) as other:
        other.join(party.invite(other.me))
        antiphon.sync(store, other)
        theirs = other.party("Household").item(file.id, File)
        assert theirs.missing() in ([file.content], [])
        for cid in theirs.missing():
            other.manager.blobs.put_all([(cid, store.manager.blobs.get(cid))])
        assert theirs.read_bytes() == b"12345"


# -- names that a peer chose


def test_a_file_is_not_saved_over_another_unless_that_is_asked_for(store: Store, tmp_path: Path) -> None:
    file = store.create_party().file(b"new", name="notes.txt")
    taken = tmp_path / "notes.txt"
    taken.write_bytes(b"mine")
    for path in (tmp_path, taken):
        with pytest.raises(InvalidInput, match=r"notes\.txt exists; name another path"):
            file.save_to(path)
    assert taken.read_bytes() == b"mine"
    assert file.save_to(tmp_path, replace=True).read_bytes() == b"new"


def test_a_hidden_file_is_not_saved_under_the_name_that_a_peer_chose(store: Store, tmp_path: Path) -> None:
    file = store.create_party().file(b"rm -r .", name=".bashrc")
    with pytest.raises(InvalidInput, match=r"the name '\.bashrc' of a hidden file"):
        file.save_to(tmp_path, replace=True)
    assert list(tmp_path.glob(".*")) == []
    assert file.save_to(tmp_path / ".bashrc").read_bytes() == b"rm -r ."


def test_a_name_that_looks_like_another_is_not_taken_from_a_peer(store: Store, tmp_path: Path) -> None:
    """A mark that turns the text around shows `invoice\u202efdp.exe` as `invoiceexe.pdf`."""
    file = store.create_party().file(b"MZ", name="invoice\u202efdp.exe")
    with pytest.raises(InvalidInput, match=r"the name 'invoice\\u202efdp\.exe', which looks like another"):
        file.save_to(tmp_path)
    assert list(tmp_path.glob("invoice*")) == []
    assert file.save_to(tmp_path / "invoice.exe").read_bytes() == b"MZ"


def test_a_file_of_zeros_has_a_limit(store: Store, tmp_path: Path) -> None:
    """A few blobs stand for any number of zeros."""
    file = store.create_party().file(bytes(3 << 20), name="zeros")
    with pytest.raises(TooLarge, match="has 3145728 bytes, more than 1048576; pass `size_max`"):
        file.save_to(tmp_path, size_max=1 << 20)
    assert list(tmp_path.glob("zeros*")) == []
    assert file.save_to(tmp_path).stat().st_size == 3 << 20


@pytest.mark.parametrize("kind", ["file", "party"])
def test_a_link_at_the_partial_file_is_not_followed(store: Store, tmp_path: Path, kind: str) -> None:
    """Whoever can write to the folder laid a link where the partial file was; what it led to was overwritten."""
    party, target = store.create_party(), tmp_path / "out"
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    for name in ("out.partial", "out"):
        (tmp_path / name).symlink_to(precious)
    if kind == "file":
        party.file(b"new").save_to(target, replace=True)
    else:
        party.export(target)
    assert precious.read_bytes() == b"precious"
    assert not target.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.glob("*out*")) == ["out", "out.partial"], "nothing is left behind"
