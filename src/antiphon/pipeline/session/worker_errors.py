"""Raise errors of Spark's workers in the driver as the Antiphon errors they were, not as Java tracebacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from antiphon.core import errors
from antiphon.core.errors import AntiphonError

_OURS = re.compile(r"^(?:\S*: )?antiphon\.core\.errors\.(\w+): (.+)$", re.MULTILINE)


@contextmanager
def raise_worker_errors() -> Iterator[None]:
    """Raise an `AntiphonError` of a worker as the same class here. Other errors pass unchanged."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        ours = worker_error(error)
        if ours is None:
            raise
        raise ours from None


def worker_error(error: Exception) -> AntiphonError | None:
    """Return the `AntiphonError` of a worker that an error of Spark reports; None if it reports another error."""
    told = _OURS.search(str(error))
    return None if told is None else _again(told[1], told[2].strip())


def _again(name: str, text: str) -> AntiphonError:
    kind = getattr(errors, name, AntiphonError)
    if isinstance(kind, type) and issubclass(kind, AntiphonError):
        try:
            return kind(text)
        except TypeError:  # the class requires a feed or a CID; the text names it
            pass
    return AntiphonError(text)
