"""`Address`: where a device listens, and the key that it proves there: `antiphon://DEVICE@HOST:PORT`.

>>> address = Address(PublicKey(b"d" * 32), "::1", 4242)
>>> str(address)
'antiphon://6464646464646464646464646464646464646464646464646464646464646464@[::1]:4242'
>>> Address.parse(str(address)) == address
True
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import PublicKey
from antiphon.mesh.transport.limits import ADDRESS_SIZE_MAX, HOST_SIZE_MAX, LABEL_SIZE_MAX, PORT_MAX

_SCHEME = "antiphon://"
_FORM = f"{_SCHEME}DEVICE@HOST:PORT"
_TEXT = re.compile(r"(?:(?P<device>[^@]*)@)?(?P<host>\[[^\[\]]*\]|[^\[\]:@/]*):(?P<port>[0-9]{1,5})", re.ASCII)
_DEVICE = re.compile(r"[0-9A-Fa-f]{64}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?")
_ZONE = re.compile(r"[A-Za-z0-9_.-]{1,15}")  # the name of a network interface


@dataclass(frozen=True, slots=True)
class Address:
    """Where a device can be dialled. The host is an IP address or a name, in the one form that compares as equal."""

    device: PublicKey
    host: str
    port: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", read_host(self.host))
        if isinstance(self.port, bool) or not 1 <= self.port <= PORT_MAX:
            raise InvalidInput(f"{self.port} is no port to dial; ports are 1 to {PORT_MAX}")

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read the text of an address. `InvalidInput` if it is not valid, or names no device."""
        bare = text.strip()
        if len(bare) > ADDRESS_SIZE_MAX or not bare.startswith(_SCHEME):
            raise InvalidInput(f"{text[:140]!r} is no address of a device; one looks like {_FORM}")
        found = _TEXT.fullmatch(bare, len(_SCHEME))
        if found is None:
            raise InvalidInput(f"{text[:140]!r} is no address of a device; one looks like {_FORM}, an IPv6 HOST in []")
        device, host = found["device"], found["host"]
        if not device:
            raise InvalidInput(
                f"{text[:140]!r} names no device, so anybody there could answer; the address is {_FORM}, "
                "as the other device shows it when it listens"
            )
        if not _DEVICE.fullmatch(device):
            raise InvalidInput(f"{device[:80]!r} is no key of a device: 64 hex digits, before the @ of {_FORM}")
        if host.startswith("[") != (":" in host):
            raise InvalidInput(f"{host[:80]!r} is no host: only an IPv6 address stands in []")
        return cls(PublicKey.from_hex(device), host.strip("[]"), int(found["port"]))

    def __str__(self) -> str:
        return f"{_SCHEME}{self.device}@{endpoint(self.host, self.port)}"


def endpoint(host: str, port: int) -> str:
    """Return `HOST:PORT`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read_host(text: str) -> str:
    """Return an IP address or the name of a host in its shortest form. `InvalidInput` if it is neither."""
    if ":" in text:
        return _read_ipv6(text)
    host = text.lower().removesuffix(".")
    labels = host.split(".")
    if labels[-1].isdecimal() or labels[-1].startswith("0x"):  # else a resolver would read 127.1 or 0x7f000001
        return _read_ipv4(text)
    if len(host) > HOST_SIZE_MAX or not all(map(_is_label, labels)):
        raise InvalidInput(
            f"{text[:80]!r} is no host: an IP address or a name in ASCII (of other scripts, its xn-- form)"
        )
    return host


def _is_label(text: str) -> bool:
    return len(text) <= LABEL_SIZE_MAX and _LABEL.fullmatch(text) is not None


def _read_ipv4(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise InvalidInput(f"{text[:80]!r} is no IPv4 address: four numbers up to 255, with dots") from None


def _read_ipv6(text: str) -> str:
    address, _, zone = text.partition("%")
    try:
        if "%" in text and not _ZONE.fullmatch(zone):
            raise ValueError(zone)
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        raise InvalidInput(f"{text[:80]!r} is no IPv6 address") from None
    return f"{parsed}%{zone}" if zone else str(parsed)
