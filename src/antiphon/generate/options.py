"""`Options` of the generator, and how totals are divided."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.core.errors import InvalidInput

PARTIES_MAX = 10_000
WRITERS_MAX = 1_000
EPOCHS_MAX = 100
MESSAGES_MAX = 1 << 32


@dataclass(frozen=True, slots=True)
class Options:
    """Equal options give equal feeds, byte for byte."""

    parties: int = 10
    items: int = 1_000
    messages: int = 20_000  # in the data feeds, geneses of items included
    writers: int = 5  # devices that write in each party, the founder's included
    seed: int = 1
    epochs: int = 1  # in each party that has epochs
    hot: float = 0.0  # the share of all messages that goes to one item
    bad: float = 0.001  # the share of messages that are refused; with 0 there are no revocations and forks either
    plain: bool = False  # all items are flat objects: only registers are written

    def check(self) -> Options:
        """Return the options, or raise `InvalidInput` for values out of range."""
        for name, low, high in (
            ("parties", 1, PARTIES_MAX),
            ("items", self.parties, MESSAGES_MAX),
            ("messages", self.items, MESSAGES_MAX),
            ("writers", 1, WRITERS_MAX),
            ("epochs", 0, EPOCHS_MAX),
            ("seed", 0, (1 << 63) - 1),
        ):
            if not low <= getattr(self, name) <= high:
                raise InvalidInput(
                    f"{name}: {getattr(self, name)}; it must be from {low} to {high} (each party has an item, and each "
                    "item a message)"
                )
        for name in ("hot", "bad"):
            if not 0 <= getattr(self, name) <= 0.9:
                raise InvalidInput(f"{name}: {getattr(self, name)}; a share is from 0 to 0.9")
        return self


def zipf(total: int, count: int, exponent: float) -> list[int]:
    """Divide `total` into `count` shares by a Zipf law, the largest first. The shares sum up to `total`.

    >>> zipf(10, 3, 1.0)
    [6, 3, 1]
    """
    weights = [(nth + 1) ** -exponent for nth in range(count)]
    whole = sum(weights)
    shares = [int(total * weight / whole) for weight in weights]
    for nth in range(total - sum(shares)):
        shares[nth % count] += 1
    return shares
