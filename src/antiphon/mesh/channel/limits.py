"""Bounds of the channel. All sizes are in bytes, times in milliseconds."""

from __future__ import annotations

TAG_SIZE = 16  # authenticates a message or a record
RECORD_SIZE_MAX = 0xFFFF  # a message of Noise, without the two bytes of its length
FRAME_SIZE_MAX = RECORD_SIZE_MAX - TAG_SIZE
HANDSHAKE_SIZE_MAX = 512  # one message of the handshake; ours have 56, 57 and 169
CLOCK_OFF_MS_MAX = 10 * 60 * 1000  # how far the dialler's clock may be from the answering end's
SEEN_COUNT_MAX = 1 << 16  # first messages that are remembered, in about 7 MB
REKEY_COUNT = 1 << 20  # records under one key: 2^32 blocks of AES at most, where GCM has a margin of 2^-65
NONCE_MAX = (1 << 64) - 1  # Noise reserves the last one for new keys
