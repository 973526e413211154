"""The line between the proxy and its encoder's process."""

import pickle
from multiprocessing.connection import Connection
from typing import Any


def send(line: "Connection[Any, Any]", what: object) -> None:
    """For `recv` at the other end. Raises OSError where there is none any more.

    In place of the line's own `send`: where that one fails, what was to be sent stays in the
    traceback as a view of a buffer, and CPython 3.12.1 crashes when both are collected as garbage.
    """
    line.send_bytes(pickle.dumps(what))
