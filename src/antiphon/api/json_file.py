"""`JsonFile`: a small JSON file in the folder of a store, replaced atomically."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from antiphon.core.errors import BadEncoding, StoreError
from antiphon.core.output_file import output_file

FILE_SIZE_MAX = 16 << 20


class JsonFile:
    """A JSON file. `what` names it in errors."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what

    def __str__(self) -> str:
        return f"{self._what} {self._path}"

    def read(self) -> Any:
        """Return the content of the file; None if there is no file."""
        try:
            size, data = self._path.stat().st_size, b""
            if size <= FILE_SIZE_MAX:
                data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self} cannot be read: {error.strerror}") from error
        if size > FILE_SIZE_MAX:
            raise BadEncoding(f"{self} is larger than {FILE_SIZE_MAX} bytes")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BadEncoding(f"{self} is no JSON: {error}; put a copy back, or correct it") from None

    def write(self, value: Any) -> None:
        """Replace the content of the file. A crash leaves the old content or the new."""
        data = json.dumps(value, indent=1, ensure_ascii=False).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"{self} cannot be written: {error.strerror}") from error
        with output_file(self._path, replace=True) as file:
            file.write(data)
