"""A fuzz target: a decoder, with the encoder that must reproduce its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.message import Message

from antiphon.core.errors import AntiphonError


class Target(NamedTuple):
    """A decoder with its encoder.

    `canonical`: a value has one encoding only, so the input must come back. `message`: it is protobuf, of this type,
    and so can be damaged as `altered` does it.
    """

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes] | None
    seeds: tuple[bytes, ...]
    canonical: bool = True
    message: type[Message] | None = None

    def run(self, data: bytes) -> bool:
        """True if the decoder accepts the input. Any exception raised here is a finding."""
        try:
            value = self.decode(data)
        except AntiphonError:
            return False
        if self.encode is not None:
            again = self.encode(value)
            if self.canonical:
                assert again == data, f"it has two encodings: {data.hex()} and {again.hex()}"
            else:
                assert self.decode(again) == value, f"{again.hex()} does not give the value back"
        return True
