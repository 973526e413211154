"""What goes over the line to an encoder's process, and what is left when nobody is there."""

import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from types import TracebackType

import pytest

from litellm_messplus.encoders.process import send


def test_the_other_end_gets_what_was_sent() -> None:
    texts = ["a text", "a lone surrogate \ud800", "x" * 100_000]
    ours, theirs = Pipe()
    with ours, theirs:
        sending = threading.Thread(target=send, args=(ours, texts))  # more than a pipe holds
        sending.start()
        assert theirs.recv() == texts
        sending.join()


def test_a_line_without_another_end_leaves_no_view_of_a_buffer_to_be_collected() -> None:
    ours, theirs = Pipe()
    theirs.close()
    with ours, pytest.raises(BrokenPipeError) as caught:
        send(ours, ["a text"])

    assert [view for view in views(caught.value.__traceback__) if type(view.obj) is not bytes] == []


def views(traceback: TracebackType | None) -> Iterator[memoryview]:
    """Those that the frames of a traceback hold."""
    while traceback is not None:
        found = traceback.tb_frame.f_locals.values()
        yield from (each for each in found if isinstance(each, memoryview))
        traceback = traceback.tb_next
