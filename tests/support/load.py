"""Clients that ask and judge until they are told to stop, and remember what they were told."""

import asyncio
import json
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx

from tests.support.patience import until
from tests.support.proxy import Proxy

JUDGING = 4
"""Clients that say what they think of each answer."""
ASKING = 2
"""Clients that only ask, and do not wait for a verdict to be taken."""
PAUSE_SECONDS = 0.2
"""Before a client whose connection was refused or cut tries again."""
LONGEST_SECONDS = 60.0
"""How long a client waits: for longer than the proxy may let it."""
MOST_FAILURES = 20
"""That are kept in words; all are counted."""


@dataclass
class Tally:
    """What the clients were told. ``acknowledged`` has the value of each label that got a 200, by
    the request's id; ``refused`` counts the verdicts that got the documented 503;
    ``cut`` counts connections that broke, ``broken`` streams that did not come to their end."""

    served: int = 0
    unrouted: int = 0
    failed: int = 0
    cut: int = 0
    broken: int = 0
    refused: int = 0
    slowest: float = 0.0
    acknowledged: dict[str, float] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def fail(self, what: str) -> None:
        """Count an answer that should not have been given."""
        self.failed += 1
        if len(self.words) < MOST_FAILURES:
            self.words.append(what[:500])


@dataclass(frozen=True)
class Routed:
    """An answer of a zoo, and the ids that it goes by."""

    request_id: str
    ids: tuple[str, str, str]


class Load:
    """Runs in a thread from entering to leaving; every second chat is a stream."""

    def __init__(self, proxy: Proxy, keys: tuple[str, ...] = ("sk-alice", "sk-bob")) -> None:
        self.tally = Tally()
        self._proxy = proxy
        self._keys = keys
        self._ended = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended = True
        self._thread.join(timeout=2 * LONGEST_SECONDS)
        if self._thread.is_alive():
            raise AssertionError("a client hangs")

    def until_acknowledged(self, more: int) -> None:
        """Wait until so many more labels are acknowledged than now."""
        enough = len(self.tally.acknowledged) + more
        until(lambda: len(self.tally.acknowledged) >= enough, self._explain)

    def until_served(self, more: int) -> None:
        """Wait until so many more requests are served than now."""
        enough = self.tally.served + more
        until(lambda: self.tally.served >= enough, self._explain)

    def _explain(self) -> str:
        return f"{self.tally}\n{self._proxy.log[-4000:]}"

    async def _run(self) -> None:
        await asyncio.gather(*map(self._client, range(JUDGING + ASKING)))

    async def _client(self, number: int) -> None:
        key = self._keys[number % len(self._keys)]
        async with httpx.AsyncClient(
            base_url=self._proxy.url,
            headers={"authorization": f"Bearer {key}"},
            timeout=LONGEST_SECONDS,
        ) as http:
            turn = 0
            while not self._ended:
                turn += 1
                try:
                    asked = await self._ask(http, f"client {number}, turn {turn}", turn % 2 == 0)
                    if asked is not None and number < JUDGING:
                        await self._judge(http, asked.ids[turn % 3], asked, (turn % 11) / 10)
                except httpx.TimeoutException as error:
                    self.tally.fail(f"no answer in time: {error!r}")
                except httpx.TransportError:
                    self.tally.cut += 1
                    await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, http: httpx.AsyncClient, prompt: str, is_streamed: bool) -> Routed | None:
        began = time.monotonic()
        answer, identity = await (_stream if is_streamed else _whole)(http, prompt)
        self.tally.slowest = max(self.tally.slowest, time.monotonic() - began)
        if is_streamed and not identity:
            self.tally.broken += 1
            return None
        if answer.status_code != 200:
            self.tally.fail(f"chat {answer.status_code}: {answer.text}")
            return None
        self.tally.served += 1
        request_id = answer.headers.get("x-messplus-request-id")
        if request_id is None:
            self.tally.unrouted += 1
            return None
        return Routed(request_id, (request_id, answer.headers["x-litellm-call-id"], identity))

    async def _judge(
        self, http: httpx.AsyncClient, identity: str, asked: Routed, value: float
    ) -> None:
        said = await http.post("/messplus/feedback", json={"id": identity, "score": value})
        if said.status_code == 200:
            if said.json()["request_id"] != asked.request_id:
                self.tally.fail(f"the label of {asked.request_id} went to another: {said.text}")
            self.tally.acknowledged[asked.request_id] = value
        elif said.status_code == 503:
            self.tally.refused += 1
        else:
            self.tally.fail(f"feedback {said.status_code}: {said.text}")


def _chat(prompt: str, **body: Any) -> dict[str, Any]:
    return {"model": "zoo", "messages": [{"role": "user", "content": prompt}], **body}


async def _whole(http: httpx.AsyncClient, prompt: str) -> tuple[httpx.Response, str]:
    """The answer, and the id in its body; none of one that failed."""
    answer = await http.post("/v1/chat/completions", json=_chat(prompt))
    return answer, answer.json()["id"] if answer.status_code == 200 else ""


async def _stream(http: httpx.AsyncClient, prompt: str) -> tuple[httpx.Response, str]:
    """The same of a stream, which has an id if it came to its end."""
    body = _chat(prompt, stream=True)
    async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = [line.removeprefix("data: ") async for line in answer.aiter_lines() if line]
    if answer.status_code != 200 or lines[-1] != "[DONE]":
        return answer, ""
    return answer, str(json.loads(lines[0]).get("id", ""))
