"""Messages as bytes: each is a length of four bytes, and that many of MessagePack.

Both ends know the messages by `contract`: the types of a method's arguments, and of what it
returns. The first frame of either end is a `Hello`; an end of another version, or without the
token, gets one line of refusal and nothing else.
"""

import asyncio
import hmac
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from inspect import iscoroutinefunction, signature
from types import GenericAlias
from typing import Any, NamedTuple, get_type_hints

import msgspec
import numpy as np
from fastapi import HTTPException

from litellm_messplus.labels.judge.asking import JudgeRefusedError
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import MessplusError, RefusedError
from litellm_messplus.runtime.loading import version

FORMAT = 1
"""The version of the messages; the package's version must be the same too."""
LONGEST = 64 * 2**20
"""The most bytes of a message: a request of more is refused by the proxy before."""
UNSENT = 64 * 2**20
"""The most bytes that may wait to be sent: an end that reads no more is taken for gone."""
HELLO_SECONDS = 5.0


class BrainAwayError(MessplusError):
    """The other end of the connection is gone, or does not answer in time."""


class BrainFailedError(BrainAwayError):
    """The other end answered with an error that nobody foresaw."""


class UnlikeError(MessplusError):
    """The other end is of another version, or has another token or other settings."""


class Hello(NamedTuple):
    """The first message of an end: its version; of a worker also its id, which is empty if it only
    asks whether it fits, since when it runs (in seconds of the epoch), the token, and the
    fingerprint of its settings; of a brain why it refuses, and the end of its log."""

    format: int
    version: str
    worker: str = ""
    started: float = 0.0
    token: str = ""
    settings: str = ""
    refused: str = ""
    position: int = 0

    def fits(self, token: str, settings: str) -> str:
        """Return why an end with this hello is refused; empty if it is not."""
        if (self.format, self.version) != (FORMAT, version()):
            return f"the brain is of version {version()}, the worker of {self.version}"
        if not hmac.compare_digest(self.token.encode(), token.encode()):
            return "the token is another one"
        if self.settings != settings:
            return "the brain has other settings than this worker: restart both with the same"
        return ""


# Bytes. Arrays are a type and their bytes, other objects their text; a lone surrogate, which no
# text on a wire can hold, is replaced.


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.tobytes()]
    if isinstance(value, np.generic):
        return value.item()
    return str(value)  # an object that LiteLLM put among a request's metadata


def _array(kind: type, value: Any) -> Any:
    if kind is object:
        return value
    return np.frombuffer(value[1], value[0]).copy()


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode


def encoded(message: Any) -> bytes:
    """Encode a message. Raises ValueError for one that is too long."""
    try:
        data = _encode(message)
    except UnicodeEncodeError:
        data = _encode(_without_surrogates(msgspec.to_builtins(message, enc_hook=_plain)))
    if len(data) > LONGEST:
        raise ValueError(f"a message of {len(data)} bytes: at most {LONGEST}")
    return len(data).to_bytes(4, "big") + data


def _without_surrogates(found: Any) -> Any:
    match found:
        case str():
            return found.encode("utf-8", "replace").decode()
        case dict():
            return {_without_surrogates(k): _without_surrogates(v) for k, v in found.items()}
        case list() | tuple():
            return [_without_surrogates(each) for each in found]
    return found


@cache
def decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of a type."""
    return msgspec.msgpack.Decoder(kind, dec_hook=_array)


class Method(NamedTuple):
    """A method of a contract: the types of its arguments as one tuple, that of what it returns, and
    whether that is waited for."""

    arguments: Any
    returns: Any
    is_answered: bool


@cache
def methods(contract: type) -> Mapping[str, Method]:
    """Return the methods of a contract by name."""
    found = {}
    for name, function in vars(contract).items():
        if name.startswith("_") or not callable(function):
            continue
        hints = get_type_hints(function)
        kinds = tuple(hints[each] for each in list(signature(function).parameters)[1:])
        found[name] = Method(
            GenericAlias(tuple, kinds), hints["return"], iscoroutinefunction(function)
        )
    return found


class Frame(NamedTuple):
    """A frame after the first. A ``number`` other than 0 is that of a question, or of its answer,
    whose ``name`` is empty, or the kind of an error."""

    number: int
    name: str
    body: msgspec.Raw


ERRORS: Mapping[str, Callable[[list[Any]], Exception]] = {
    "RefusedError": lambda given: RefusedError(*given),
    "JudgeRefusedError": lambda given: JudgeRefusedError(*given),
    "HTTPException": lambda given: HTTPException(*given),
}
"""The errors that are the same at the other end, by their arguments."""


def _error(error: Exception) -> tuple[str, list[Any]]:
    if isinstance(error, HTTPException):
        return "HTTPException", [error.status_code, error.detail]
    if isinstance(error, RefusedError | JudgeRefusedError):
        return type(error).__name__, [str(error)]
    return "error", [f"{type(error).__name__}: {error}"]


class Peer:
    """One end of a connection: it answers by ``served``, whose contract is ``serves``, and asks by
    the contract ``asks``."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        serves: type,
        served: object,
        asks: type,
        counters: Counters,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._serves, self._served = methods(serves), served
        self._asks, self._counters = methods(asks), counters
        self._waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._number = 0
        self.heard = 0
        """How many frames the other end has sent."""
        self.is_gone = False

    def tell(self, name: str, *arguments: Any) -> None:
        """Send a message that is not answered. Raises BrainAwayError if the other end is gone."""
        self._send((0, name, arguments))

    async def ask(self, name: str, *arguments: Any) -> Any:
        """Send a question, and return the answer. Raises its error, and BrainAwayError."""
        self._number += 1
        number, answer = self._number, asyncio.get_running_loop().create_future()
        self._waiting[number] = name, answer
        try:
            self._send((number, name, arguments))
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def run(self) -> None:
        """Take what the other end sends, until it is gone."""
        try:
            while True:
                frame = decoder(Frame).decode(await read_frame(self._reader))
                self.heard += 1
                self._take(frame)
        except (OSError, EOFError):
            return
        except (ValueError, msgspec.MsgspecError):
            self._counters.failure("messages_failed", "a connection is ended: no frame came")
        finally:
            self.close()

    def close(self) -> None:
        """End the connection; what is waited for gets a BrainAwayError."""
        self.is_gone = True
        self._writer.close()
        for _, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(BrainAwayError("the connection is closed"))

    def _take(self, frame: Frame) -> None:
        if (method := self._serves.get(frame.name)) is not None:
            if not method.is_answered:
                with self._counters.tolerated("messages_failed", f"{frame.name} failed"):
                    arguments = decoder(method.arguments).decode(frame.body)
                    getattr(self._served, frame.name)(*arguments)
                return
            task = asyncio.create_task(self._answer(frame, method), name=f"messplus-{frame.name}")
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            return
        name, answer = self._waiting.get(frame.number, ("", None))
        if answer is None or answer.done():
            return
        if not frame.name:
            answer.set_result(decoder(self._asks[name].returns).decode(frame.body))
            return
        given = decoder(list[Any]).decode(frame.body)
        make = ERRORS.get(frame.name)
        answer.set_exception(BrainFailedError(*given) if make is None else make(given))

    async def _answer(self, frame: Frame, method: Method) -> None:
        found: tuple[str, Any]
        try:
            arguments = decoder(method.arguments).decode(frame.body)
            found = "", await getattr(self._served, frame.name)(*arguments)
        except Exception as error:
            found = _error(error)
            if found[0] == "error" and not self.is_gone:  # else nobody waits for it
                self._counters.failure("messages_failed", f"{frame.name} failed")
        with suppress(BrainAwayError):
            self._send((frame.number, *found))

    def _send(self, message: Any) -> None:
        data, transport = encoded(message), self._writer.transport
        if self.is_gone or transport.is_closing() or transport.get_write_buffer_size() > UNSENT:
            self.is_gone = True
            raise BrainAwayError("the connection is closed")
        self._writer.write(data)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """Read one frame. Raises EOFError at the end, ValueError for one that is too long."""
    length = int.from_bytes(await reader.readexactly(4), "big")
    if length > LONGEST:
        raise ValueError(f"a message of {length} bytes: at most {LONGEST}")
    return await reader.readexactly(length)


async def read_hello(reader: asyncio.StreamReader) -> Hello:
    """Read the first frame of the other end. Raises UnlikeError if it is none, or does not come."""
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            found: Hello = decoder(Hello).decode(await read_frame(reader))
            return found
    except (TimeoutError, OSError, EOFError, ValueError, msgspec.MsgspecError) as error:
        raise UnlikeError(f"no hello came: {error!r}") from error
