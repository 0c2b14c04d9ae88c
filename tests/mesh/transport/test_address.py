"""Addresses have one text, and anything else is refused with the reason."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, strategies as st

from antiphon.core.errors import InvalidInput
from antiphon.core.keys import PublicKey
from antiphon.mesh.transport.address import Address

KEY = PublicKey(bytes(range(32)))
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z](\.[a-z]{1,10}){0,3}", fullmatch=True)
HOSTS = st.one_of(NAMES, st.ip_addresses().map(str))


@given(st.binary(min_size=32, max_size=32), HOSTS, st.integers(1, 65_535))
def test_an_address_comes_back_from_its_text(key: bytes, host: str, port: int) -> None:
    address = Address(PublicKey(key), host, port)

    assert Address.parse(str(address)) == address
    assert str(Address.parse(f"  {address}\n")) == str(address)


@given(st.text(max_size=500))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for candidate in (text, f"antiphon://{text}", f"antiphon://{KEY}@{text}", f"antiphon://{KEY}@{text}:1"):
        try:
            address = Address.parse(candidate)
        except InvalidInput:
            continue
        assert Address.parse(str(address)) == address


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_stands_in_brackets(host: ipaddress.IPv6Address) -> None:
    text = f"antiphon://{KEY}@[{host.exploded.upper()}]:4242"

    assert str(Address.parse(text)) == f"antiphon://{KEY}@[{host}]:4242"
    with pytest.raises(InvalidInput):
        Address.parse(f"antiphon://{KEY}@{host}:4242")


def test_a_zone_stays() -> None:
    text = f"antiphon://{KEY}@[fe80::1%eth0]:4242"

    assert str(Address.parse(text)) == text


@pytest.mark.parametrize("text", ["antiphon://192.0.2.7:4242", "antiphon://@192.0.2.7:4242"])
def test_an_address_without_a_device_says_what_to_do(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"names no device.*antiphon://DEVICE@HOST:PORT.*as the other device shows"):
        Address.parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "one looks like"),
        ("http://example.org:80", "one looks like"),
        (f"{KEY}@example.org:4242", "one looks like"),
        (f"antiphon://{KEY}@example.org", "one looks like"),
        (f"antiphon://{KEY}@example.org:4242/path", "one looks like"),
        (f"antiphon://{KEY}@{KEY}@example.org:4242", "one looks like"),
        (f"antiphon://{KEY}@example.org:٤٢", "one looks like"),
        (f"antiphon://{KEY}@" + "a." * 200 + "org:1", "one looks like"),
        (f"antiphon://{str(KEY)[:-1]}@example.org:4242", "64 hex digits"),
        (f"antiphon://{str(KEY)[:-2]} 0@example.org:4242", "64 hex digits"),
        (f"antiphon://{KEY}@example.org:0", "ports are 1 to 65535"),
        (f"antiphon://{KEY}@example.org:65536", "ports are 1 to 65535"),
        (f"antiphon://{KEY}@:4242", "is no host"),
        (f"antiphon://{KEY}@exam ple.org:4242", "is no host"),
        (f"antiphon://{KEY}@bücher.example:4242", "xn--"),
        (f"antiphon://{KEY}@-x.org:4242", "is no host"),
        (f"antiphon://{KEY}@a..b:4242", "is no host"),
        (f"antiphon://{KEY}@{'a' * 64}.org:4242", "is no host"),
        (f"antiphon://{KEY}@[example.org]:4242", "only an IPv6 address"),
        (f"antiphon://{KEY}@[::1::]:4242", "no IPv6 address"),
        (f"antiphon://{KEY}@[::1%]:4242", "no IPv6 address"),
        (f"antiphon://{KEY}@[::1%a b]:4242", "no IPv6 address"),
        (f"antiphon://{KEY}@127.1:4242", "no IPv4 address"),
        (f"antiphon://{KEY}@192.0.2.256:4242", "no IPv4 address"),
        (f"antiphon://{KEY}@0x7f000001:4242", "no IPv4 address"),
    ],
)
def test_what_is_no_address_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        Address.parse(text)


def test_hosts_and_keys_compare_in_one_form() -> None:
    upper = Address.parse(f"antiphon://{str(KEY).upper()}@EXAMPLE.org.:4242")

    assert upper == Address(KEY, "example.org", 4242)
    with pytest.raises(InvalidInput, match="ports"):
        Address(KEY, "example.org", True)
