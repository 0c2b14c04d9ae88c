"""What went wrong in one of Spark's workers, told as it was there, and not as a traceback of Java's."""

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
def workers_told() -> Iterator[None]:
    """An error of ours in a worker is raised here as one of ours; whatever else it was, as it came."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        told = _OURS.search(str(error))
        if told is None:
            raise
        raise _again(told[1], told[2].strip()) from None


def _again(name: str, text: str) -> AntiphonError:
    kind = getattr(errors, name, AntiphonError)
    if isinstance(kind, type) and issubclass(kind, AntiphonError):
        try:
            return kind(text)
        except TypeError:  # it wants to know a feed or a CID, which the text names
            pass
    return AntiphonError(text)
