"""The anchors of bench/live.py in Python: pycrdt (Yjs in Rust), and a bare dict. It takes one JSON object a line.

work     edits, kind, count, batch, bare → local and received (seconds), value; `bare` is a dict instead of pycrdt
updates  edits, file                     → makes the updates of a trace, one for each edit
apply    file, expected                  → seconds
"""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pycrdt import Array, Doc, Map, Text, TransactionEvent

from harness import live_work

_LENGTH = struct.Struct("<I")


def work(edits: str, kind: str, count: int, batch: int, bare: bool) -> dict[str, Any]:
    some = live_work.load(edits)[kind][:count]
    if bare:
        return _bare(some)
    doc: Doc[Any] = Doc()
    act, read = _open(doc, kind)
    updates: list[bytes] = []
    subscription = doc.observe(lambda event: _keep(updates, event))
    start = time.perf_counter()
    if batch == 1:
        for edit in some:
            act(*edit)
    else:
        for at in range(0, count, batch):
            with doc.transaction():
                for edit in some[at : at + batch]:
                    act(*edit)
    local = time.perf_counter() - start
    doc.unobserve(subscription)
    other: Doc[Any] = Doc()
    _, read_other = _open(other, kind)
    start = time.perf_counter()
    for update in updates:
        other.apply_update(update)
    received = time.perf_counter() - start
    value = read()
    assert read_other() == value
    return {"local": local, "received": received, "value": value}


def _keep(updates: list[bytes], event: TransactionEvent) -> None:
    updates.append(event.update)


def _bare(some: list[list[Any]]) -> dict[str, Any]:
    items: list[dict[str, Any]] = [{} for _ in range(live_work.OBJECT_ITEMS)]
    start = time.perf_counter()
    for item, key, value in some:
        items[item][key] = value
    return {"local": time.perf_counter() - start, "received": None, "value": items}


def _open(doc: Doc[Any], kind: str) -> tuple[Callable[..., None], Callable[[], Any]]:
    """Functions that make an edit and read the value."""
    if kind == "object":
        maps = [doc.get(str(number), type=Map) for number in range(live_work.OBJECT_ITEMS)]

        def put(item: int, key: str, value: Any) -> None:
            maps[item][key] = value

        # Numbers are floats in Yjs; the edits have integers.
        return put, lambda: [{key: _integer(value) for key, value in (one.to_py() or {}).items()} for one in maps]
    if kind == "array":
        array = doc.get("array", type=Array)

        def splice(index: int, deleted: int, inserted: list[Any]) -> None:
            if deleted:
                del array[index : index + deleted]
            for value in inserted:
                array.insert(index, value)

        return splice, lambda: [_integer(value) for value in array.to_py() or []]
    text = doc.get("text", type=Text)

    def replace(position: int, deleted: int, inserted: str) -> None:
        if deleted:
            del text[position : position + deleted]
        if inserted:
            text.insert(position, inserted)

    return replace, lambda: str(text)


def _integer(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value


def updates(edits: str, file: str) -> dict[str, Any]:
    doc: Doc[Any] = Doc()
    act, _ = _open(doc, "text")
    with Path(file).open("wb") as out:
        subscription = doc.observe(lambda event: _write(out.write, event))
        for edit in live_work.load(edits):
            act(*edit)
        doc.unobserve(subscription)
    return {}


def _write(write: Callable[[bytes], object], event: TransactionEvent) -> None:
    write(_LENGTH.pack(len(event.update)) + event.update)


def apply(file: str, expected: str) -> dict[str, Any]:
    some = list(_framed(Path(file).read_bytes()))
    doc: Doc[Any] = Doc()
    text = doc.get("text", type=Text)
    start = time.perf_counter()
    for update in some:
        doc.apply_update(update)
    seconds = time.perf_counter() - start
    assert str(text) == Path(expected).read_text()
    return {"process": seconds}


def _framed(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        (size,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        yield data[at : at + size]
        at += size


def main() -> None:
    commands: dict[str, Callable[..., dict[str, Any]]] = {"work": work, "updates": updates, "apply": apply}
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(commands[command.pop("do")](**command)), flush=True)


if __name__ == "__main__":
    main()
