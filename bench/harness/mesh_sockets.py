"""Bare sockets for bench/mesh.py: an echo with a sync of the disk at each end, and a relay that counts bytes."""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

MESSAGE_SIZE = 250  # about that of one small edit


def synced_append(file: int) -> None:
    os.write(file, bytes(MESSAGE_SIZE))
    os.fdatasync(file)


class Receiver:
    """Takes messages on one connection, writes each to a synced file, and notes when it is there."""

    def __init__(self, host: str, folder: str, count: int) -> None:
        self._server = socket.create_server((host, 0))
        self.port: int = self._server.getsockname()[1]
        self.times: list[int] = []
        self._thread = threading.Thread(target=self._run, args=(Path(folder) / "received", count), daemon=True)
        self._thread.start()

    def _run(self, path: Path, count: int) -> None:
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        met, _ = self._server.accept()
        with met, self._server:
            for _ in range(count):
                if not met.recv(MESSAGE_SIZE, socket.MSG_WAITALL):
                    break
                synced_append(file)
                self.times.append(time.monotonic_ns())
        os.close(file)

    def join(self) -> list[int]:
        self._thread.join(60)
        return self.times


def send_synced(host: str, port: int, folder: str, count: int, pause: threading.Event, pause_s: float) -> list[int]:
    """Write messages to a synced file, and send each. Return the times before each write."""
    file = os.open(Path(folder) / "sent", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    times = []
    with socket.create_connection((host, port)) as met:
        met.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(count):
            pause.wait(pause_s)
            times.append(time.monotonic_ns())
            synced_append(file)
            met.sendall(bytes(MESSAGE_SIZE))
    os.close(file)
    return times


def pour(host: str, size: int) -> int:
    """Send so many bytes to the first who connects. Return the port."""
    server = socket.create_server((host, 0))

    def run() -> None:
        met, _ = server.accept()
        with server, met:
            met.sendall(bytes(size))

    threading.Thread(target=run, daemon=True).start()
    port: int = server.getsockname()[1]
    return port


def drain(host: str, port: int, size: int) -> float:
    """Take so many bytes. Return the seconds since connecting."""
    start = time.perf_counter()
    with socket.create_connection((host, port)) as met:
        while size:
            data = met.recv(min(size, 1 << 18))
            if not data:
                raise OSError(f"{size:,} bytes never came")
            size -= len(data)
    return time.perf_counter() - start


class CountingRelay:
    """Passes the bytes of connections on loopback to another port, and counts them, or keeps them all."""

    def __init__(self, port: int, *, keeps: bool = False) -> None:
        self.kept: list[tuple[int, bytes]] | None = [] if keeps else None  # the port of the sender, and what it sent
        self._to = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.forth = 0  # bytes from those who connect
        self.back = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with selectors.DefaultSelector() as wait:
            wait.register(self._server, selectors.EVENT_READ)
            while not self._ended.is_set():
                for key, _ in wait.select(0.2):
                    if key.fileobj is self._server:
                        near, _ = self._server.accept()
                        far = socket.create_connection(("127.0.0.1", self._to))
                        wait.register(near, selectors.EVENT_READ, (near, far))
                        wait.register(far, selectors.EVENT_READ, (far, near))
                    else:
                        self._pass(wait, *key.data)

    def _pass(self, wait: selectors.BaseSelector, giver: socket.socket, taker: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            data = giver.recv(1 << 18)
            taker.sendall(data)
        if self.kept is not None and data:
            self.kept.append((giver.getpeername()[1], data))
        if giver.getsockname()[1] == self.port:
            self.forth += len(data)
        else:
            self.back += len(data)
        if not data:
            for end in (giver, taker):
                with suppress(KeyError):
                    wait.unregister(end)
                end.close()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(10)
        self._server.close()
