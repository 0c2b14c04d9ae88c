"""Plain sockets on the hosts of a laboratory, to measure its link: `python talk.py COMMAND …`; prints one line of JSON.

echo ADDRESS               listen (prints the port), and send back all that comes on one connection
ask ADDRESS PORT COUNT     times of COUNT echoes of one byte, in seconds, after one that is not counted
take ADDRESS SIZE          listen (prints the port), read SIZE bytes; the seconds from the first to the last of them
send ADDRESS PORT SIZE     send SIZE bytes on one connection
hear ADDRESS               listen for datagrams (prints the port), until one says "end"; the numbers of those that came
throw ADDRESS PORT COUNT   send COUNT numbered datagrams, a hundred at a time, and "end" until it is answered
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable

PATIENCE = 30.0


def tell(found: object) -> None:
    print(json.dumps(found), flush=True)


def listen(address: str) -> socket.socket:
    server = socket.create_server((address, 0))
    server.settimeout(PATIENCE)
    tell(server.getsockname()[1])
    met, _ = server.accept()
    met.settimeout(PATIENCE)
    return met


def dial(address: str, port: str) -> socket.socket:
    met = socket.create_connection((address, int(port)), timeout=PATIENCE)
    met.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return met


def echo(address: str) -> None:
    with listen(address) as met:
        while data := met.recv(1):
            met.sendall(data)


def ask(address: str, port: str, count: str) -> None:
    times = []
    with dial(address, port) as met:
        for _ in range(int(count) + 1):
            began = time.perf_counter()
            met.sendall(b"?")
            met.recv(1)
            times.append(time.perf_counter() - began)
    tell(times[1:])


def take(address: str, size: str) -> None:
    with listen(address) as met:
        left = int(size) - len(met.recv(1))
        began = time.perf_counter()
        while left:
            left -= len(met.recv(min(left, 1 << 16)))
        tell(time.perf_counter() - began)


def send(address: str, port: str, size: str) -> None:
    with dial(address, port) as met:
        met.sendall(bytes(int(size)))
        met.shutdown(socket.SHUT_WR)
        met.recv(1)


def hear(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind((address, 0))
        here.settimeout(PATIENCE)
        tell(here.getsockname()[1])
        came = []
        while True:
            data, sender = here.recvfrom(100)
            if data == b"end":
                break
            came.append(int(data))
        for _ in range(50):  # some of them may be lost
            here.sendto(b"ended", sender)
        tell(came)


def throw(address: str, port: str, count: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.connect((address, int(port)))
        here.settimeout(0.005)
        for number in range(int(count)):
            here.send(b"%d" % number)
            if number % 100 == 99:
                answered(here)
        here.settimeout(0.2)
        for _ in range(100):
            here.send(b"end")
            if answered(here):
                return


def answered(here: socket.socket) -> bool:
    try:
        return bool(here.recv(100))
    except (TimeoutError, ConnectionRefusedError):
        return False


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {act.__name__: act for act in (echo, ask, take, send, hear, throw)}
    commands[sys.argv[1]](*sys.argv[2:])
