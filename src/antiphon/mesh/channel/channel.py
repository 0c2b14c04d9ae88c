"""`Channel`: one end of an encrypted channel between two devices, over ordered bytes, without I/O.

dialler                                answering end
e, es, time                    ──▶     silent unless all is right
                               ◀──     e, ee, version, features
s, se, version, features,
  device key, signature        ──▶     checks that the key signed, and is the static key
records                        ◀─▶     records
"""

from __future__ import annotations

from typing import TypeVar

from antiphon.core.errors import ChannelFault, InvalidInput
from antiphon.core.keys import KeyPair, PublicKey
from antiphon.core.ports import Randomness
from antiphon.mesh.channel.device_keys import static_key, static_public
from antiphon.mesh.channel.limits import FRAME_SIZE_MAX, HANDSHAKE_SIZE_MAX, RECORD_SIZE_MAX, REKEY_COUNT, TAG_SIZE
from antiphon.mesh.channel.noise import DH_SIZE, XK, CipherState, HandshakeState, Suite
from antiphon.mesh.channel.payloads import Dial, Offer, Proof
from antiphon.mesh.channel.record_reader import RecordReader
from antiphon.mesh.channel.seen_handshakes import SeenHandshakes

T = TypeVar("T")
VERSION = 1
SUITE = Suite.of("AESGCM", "SHA256")
SUITE_NUMBER = 1  # of Curve25519 with `SUITE`; another number is for a successor that withstands quantum computers
PROLOGUE = b"antiphon mesh 1" + bytes((SUITE_NUMBER,))  # and then the answering end's device key


class Channel:
    """One end of a channel: `dial` or `answer` begins one.

    `receive` raises `ChannelFault` when the other end, or somebody between, breaks the channel; then it has ended. Only
    an answering end that has not sent anything yet is silent instead, so that nobody learns who it is.

    >>> from antiphon.core.ports import SeededRandomness
    >>> chance = SeededRandomness("example")
    >>> alice, bob = KeyPair.generate(chance), KeyPair.generate(chance)
    >>> one = Channel.dial(alice, bob.key, now_ms=0, randomness=chance)
    >>> other = Channel.answer(bob, SeenHandshakes(), now_ms=0, randomness=chance)
    >>> other.receive(one.outgoing()), one.receive(other.outgoing()), other.receive(one.outgoing())
    ([], [], [])
    >>> one.id == other.id, other.device == alice.key
    (True, True)
    >>> other.receive(one.seal(b"hello"))
    [b'hello']
    """

    __slots__ = (
        "_device",
        "_ended",
        "_handshake",
        "_id",
        "_now_ms",
        "_offer",
        "_outgoing",
        "_own",
        "_randomness",
        "_receiving",
        "_records",
        "_seen",
        "_sending",
        "_silent",
        "dialled",
    )

    def __init__(self, own: KeyPair, *, dialled: bool, now_ms: int, randomness: Randomness, features: int) -> None:
        if not 0 <= features < 1 << 63:
            raise InvalidInput(f"features are a set of 63 bits, not {features}")
        self.dialled = dialled
        self._own = own
        self._now_ms = now_ms
        self._randomness = randomness
        self._offer = Offer(VERSION, features)
        self._records = RecordReader(HANDSHAKE_SIZE_MAX)
        self._seen: SeenHandshakes | None = None
        self._handshake: HandshakeState | None = None
        self._sending: CipherState | None = None
        self._receiving: CipherState | None = None
        self._device: PublicKey | None = None
        self._id = b""
        self._outgoing = b""
        self._ended = ""
        self._silent = False

    @classmethod
    def dial(
        cls, own: KeyPair, their_device: bytes, *, now_ms: int, randomness: Randomness, features: int = 0
    ) -> Channel:
        """Begin a channel to a device. Refuse what is no device key, and the key of this device itself."""
        if their_device == own.key:
            raise InvalidInput(f"{own.key.short} is this device itself: dial another one")
        channel = cls(own, dialled=True, now_ms=now_ms, randomness=randomness, features=features)
        static = static_public(their_device)
        channel._device = PublicKey(their_device)
        channel._handshake = channel._begin(static)
        channel._write(Dial(now_ms).encode())
        return channel

    @classmethod
    def answer(
        cls, own: KeyPair, seen: SeenHandshakes, *, now_ms: int, randomness: Randomness, features: int = 0
    ) -> Channel:
        """Wait for a dialler. `seen` is that of all channels that this device answers."""
        channel = cls(own, dialled=False, now_ms=now_ms, randomness=randomness, features=features)
        channel._seen = seen
        return channel

    @property
    def is_open(self) -> bool:
        """True if the other device is proven, and frames can be sent and received."""
        return self._receiving is not None

    @property
    def is_silent(self) -> bool:
        """True if this answering end was not dialled rightly. It ignores all bytes: close it as if none had come."""
        return self._silent

    @property
    def device(self) -> PublicKey:
        """The other end's device key. An answering end knows it once it is open."""
        if self._device is None:
            raise InvalidInput("the other device is not proven: wait until the channel is open")
        return self._device

    @property
    def id(self) -> bytes:
        """The hash of the handshake: the same at both ends, and of this channel alone."""
        return self._proven(self._id)

    @property
    def version(self) -> int:
        """The version that both ends speak."""
        return self._proven(self._offer).version

    @property
    def features(self) -> int:
        """The features that both ends have."""
        return self._proven(self._offer).features

    def receive(self, data: bytes) -> list[bytes]:
        """Take bytes of the other end, and return the frames that they complete."""
        if self._silent:
            return []
        if self._ended:
            raise ChannelFault(f"the channel has ended: {self._ended}")
        frames = []
        try:
            for record in self._records.split(data):
                if self._receiving is None:
                    self._proceed(bytes(record))
                else:
                    frames.append(self._open(self._receiving, record))
        except InvalidInput as error:
            self._end(str(error))
            if self._silent:
                return []
            if isinstance(error, ChannelFault):
                raise
            raise ChannelFault(str(error)) from error
        return frames

    def outgoing(self) -> bytes:
        """Return the messages of the handshake that are to be sent now, before anything that is sealed."""
        data, self._outgoing = self._outgoing, b""
        return data

    def seal(self, frame: bytes) -> bytes:
        """Encrypt a frame. Its record must be sent, in the order of sealing."""
        cipher = self._sending
        if cipher is None or self._outgoing:
            if self._ended:
                raise ChannelFault(f"the channel has ended: {self._ended}")
            raise InvalidInput("the handshake is not done: send `outgoing()`, and wait until the channel is open")
        if not 0 < len(frame) <= FRAME_SIZE_MAX:
            raise InvalidInput(f"a frame has 1 to {FRAME_SIZE_MAX} bytes, not {len(frame)}: split it")
        sealed = cipher.encrypt(frame)
        if cipher.count % REKEY_COUNT == 0:
            cipher.rekey()
        return len(sealed).to_bytes(2, "big") + sealed

    # -- records

    @staticmethod
    def _open(cipher: CipherState, record: memoryview) -> bytes:
        if len(record) <= TAG_SIZE:
            raise ChannelFault("a record without a frame was sent: drop the connection")
        frame = cipher.decrypt(record)
        if cipher.count % REKEY_COUNT == 0:
            cipher.rekey()
        return frame

    # -- the handshake

    def _begin(self, remote_static: bytes = b"") -> HandshakeState:
        """Begin the handshake. Only now it takes memory, so that silent sockets cost little."""
        return HandshakeState(
            XK,
            SUITE,
            dials=self.dialled,
            prologue=PROLOGUE + (self.device if self.dialled else self._own.key),
            ephemeral=self._randomness.bytes(DH_SIZE),
            static=static_key(self._own),
            remote_static=remote_static,
        )

    def _proceed(self, message: bytes) -> None:
        """Take a message of the handshake."""
        if self._handshake is None:
            self._take_dial(message)
        elif self.dialled:
            self._take_offer(self._handshake, message)
        else:
            self._take_proof(self._handshake, message)

    def _take_dial(self, message: bytes) -> None:
        handshake = self._begin()
        dial = Dial.decode(handshake.read(message))
        assert self._seen is not None
        if not self._seen.add(handshake.remote_ephemeral, sent_ms=dial.sent_ms, now_ms=self._now_ms):
            raise ChannelFault("the first message was sent before, or its clock is wrong")
        self._handshake = handshake
        self._write(self._offer.encode())

    def _take_offer(self, handshake: HandshakeState, message: bytes) -> None:
        offer = Offer.decode(handshake.read(message))
        self._write(Proof.sign(self._offer, self._own, handshake.hash).encode())
        self._finish(handshake, self._offer.agree(offer))

    def _take_proof(self, handshake: HandshakeState, message: bytes) -> None:
        transcript = handshake.hash
        proof = Proof.decode(handshake.read(message))
        if static_public(proof.device) != handshake.remote_static:
            raise ChannelFault("the dialler's device key is not the key that it holds: drop the connection")
        if not proof.is_signed(transcript):
            raise ChannelFault("the dialler's device key has not signed this handshake: drop the connection")
        if proof.device == self._own.key:
            raise ChannelFault("the dialler has the key of this device: drop the connection")
        self._device = PublicKey(proof.device)
        self._finish(handshake, self._offer.agree(proof.offer))

    def _write(self, payload: bytes) -> None:
        assert self._handshake is not None
        message = self._handshake.write(payload)
        self._outgoing += len(message).to_bytes(2, "big") + message

    def _finish(self, handshake: HandshakeState, agreed: Offer) -> None:
        self._id, self._offer = handshake.hash, agreed
        self._sending, self._receiving = handshake.split()
        self._handshake = None
        self._records.size_max = RECORD_SIZE_MAX

    def _end(self, why: str) -> None:
        """End the channel. No message or record is taken from now on, and nothing is sent."""
        self._ended = why
        self._silent = not self.dialled and self._handshake is None and self._receiving is None
        self._outgoing = b""
        self._records = RecordReader(0)
        self._handshake = self._sending = self._receiving = None

    def _proven(self, value: T) -> T:
        if not self._id:
            raise InvalidInput("the other device is not proven: wait until the channel is open")
        return value
