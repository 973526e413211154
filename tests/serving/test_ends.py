"""A request ends once, by what its client got, in whichever order LiteLLM tells of it, or not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litellm.types.utils import Delta, ModelResponseStream, StreamingChoices
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.contract import Hands
from litellm_messplus.brain.messages import Order
from litellm_messplus.brain.monitoring import LostRequests
from litellm_messplus.brain.workers import Workers
from litellm_messplus.journal import Journal
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.vocabulary import CallStatus, Failure
from litellm_messplus.serving import served
from litellm_messplus.serving.deployments.deployment import Failing
from litellm_messplus.serving.deployments.index import DeploymentIndex
from litellm_messplus.serving.deployments.metering import Meter
from litellm_messplus.serving.ends import CallEnd, CallSink, call_record
from litellm_messplus.serving.litellm_seam import REDACTED
from litellm_messplus.serving.open_requests import OpenRequest, OpenRequests
from litellm_messplus.serving.served import ServedCalls
from litellm_messplus.serving.surfaces import answers
from litellm_messplus.store import log
from tests.support.builders import build_zoo, request, served_call

GOT, DISCARDED, HIDDEN = "what the client got", "discarded", "redacted-by-litellm"
USAGE = {"prompt_tokens": 10, "completion_tokens": 2}


def answer(text: str, name: str = "got") -> dict[str, Any]:
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    hidden = {"model_id": f"d-{name}", "response_cost": 0.5}
    return {"id": name, "choices": [choice], "usage": USAGE, "_hidden_params": hidden}


def piece(text: str | None, finish: str | None = None) -> ModelResponseStream:
    choice = StreamingChoices(index=0, delta=Delta(content=text), finish_reason=finish)
    return ModelResponseStream(id="got", model="m", choices=[choice])


class Played:
    """One request behind LiteLLM's hooks, and what was logged of its end."""

    def __init__(self, *, has_client: bool = True) -> None:
        self.ends: list[CallEnd] = []
        self.now = 0.0
        self.meter = Meter({"zoo": build_zoo()}, {}, Counters())
        off = SimpleNamespace(is_on=lambda zoo: False)
        road = SimpleNamespace(called=lambda *given: None)
        sink = SimpleNamespace(ended=self._ended, scores=off, meter=self.meter, road=road)
        self.counters = Counters()
        self.calls = ServedCalls(
            OpenRequests(),
            DeploymentIndex(),
            cast(CallSink, sink),
            Failing(),
            self.counters,
        )
        order = Order(request("r1"))
        self.opened = OpenRequest(order, has_client=has_client, offered_at=0.0)
        self.data: dict[str, Any] = {"litellm_call_id": "litellm-r1", "metadata": {}}
        self.calls.open_requests.add(self.opened, self.data["metadata"])

    def _ended(self, opened: OpenRequest, end: CallEnd) -> Any:
        self.ends.append(end)
        return call_record(opened.record, end, self.meter)

    async def play(self, *moves: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(served, "time", SimpleNamespace(monotonic=lambda: self.now))
            for move in moves:
                self.now += 0.1
                await MOVES[move](self)
                await asyncio.sleep(0)

    async def hand(self, response: Any) -> None:
        info = {"model_id": "d-got"}
        assert await self.calls.headers(self.data, response, info) is not None

    async def stream(self, *chunks: Any, error: Exception | None = None, left: int = 9) -> None:
        async def upstream() -> AsyncIterator[Any]:
            for chunk in chunks:
                yield chunk
            if error is not None:
                raise error

        await self.hand(upstream())
        followed: Any = self.calls.followed(self.data, upstream())
        with suppress(ValueError):
            async for _ in followed:
                left -= 1
                if not left:
                    break
        await followed.aclose()

    async def report(self, response: Any, **details: Any) -> None:
        payload = {"id": response.get("id"), "model_id": "d-got", **USAGE, "response_cost": 0.5}
        event = {"standard_logging_object": payload, "litellm_params": self.data}
        await self.calls.reported({**self.data, **event, **details}, response)

    async def fail(self) -> None:
        self.calls.failed(self.data, None, ValueError("broken"))

    async def wait(self, seconds: float) -> None:
        self.now += seconds
        await self.calls.sweep()


MOVES: dict[str, Any] = {
    "whole": lambda play: play.hand(answer(GOT)),
    "no choices": lambda play: play.hand({**answer(GOT), "choices": []}),
    "stream": lambda play: play.stream(piece(GOT), piece(None, "stop")),
    "stream of nothing": lambda play: play.stream(piece(None, "stop")),
    "no chunk": lambda play: play.stream(),
    "cut stream": lambda play: play.stream(piece(GOT), error=ValueError("cut")),
    "left": lambda play: play.stream(piece(GOT), piece(None, "stop"), left=1),
    "left at the end": lambda play: play.stream(piece(GOT, "stop"), piece(None), left=1),
    "told": lambda play: play.report(answer(GOT)),
    "told of another": lambda play: play.report(answer(DISCARDED, "discarded")),
    "told without words": lambda play: play.report(answer(HIDDEN), messages=REDACTED),
    "told without words of another": lambda play: play.report({"text": HIDDEN}, messages=REDACTED),
    "told without payload": lambda play: play.report(answer(GOT), standard_logging_object=None),
    "fails": lambda play: play.fail(),
    "soon": lambda play: play.wait(1.0),
    "later": lambda play: play.wait(3.0),
}
LATE = "an hour later"
HANDED = set(list(MOVES)[:8])
MOVES[LATE] = lambda play: play.wait(1e5)


async def ended(*moves: str, **given: Any) -> CallEnd:
    play = Played(**given)
    await play.play(*moves, LATE)
    assert play.counters.as_dict() == {}
    assert (play.opened.handed, play.opened.report) == (None, None)
    (end,) = play.ends
    return end


@given(st.lists(st.sampled_from(list(MOVES)), max_size=8), st.booleans())
def test_a_request_ends_once_whatever_comes(moves: list[str], has_client: bool) -> None:
    end = asyncio.run(ended(*moves, has_client=has_client))

    assert end.call_id == "r1.0"
    is_taken = has_client and LATE not in moves and not HANDED.isdisjoint(moves)
    assert answers.text(end.response) in ({GOT, ""} if is_taken else {GOT, "", DISCARDED})
    assert (end.failure is None) == (end.error is None)
    if not moves:
        assert end.failure is Failure.UNKNOWN


@pytest.mark.parametrize(
    ("moves", "failure", "text"),
    [
        (["whole", "told"], None, GOT),
        (["told", "whole"], None, GOT),
        (["whole"], None, GOT),
        (["told"], None, GOT),
        (["told without words"], None, ""),
        (["told of another", "whole"], None, GOT),
        (["whole", "told of another"], None, GOT),
        (["whole", "told without words"], None, GOT),
        (["whole", "told without payload"], None, GOT),
        (["stream", "told"], None, GOT),
        (["told without words", "stream"], None, GOT),
        (["stream"], None, GOT),
        (["left at the end", "told"], None, GOT),
        (["no choices"], Failure.UPSTREAM, ""),
        (["no choices", "told"], Failure.UPSTREAM, ""),
        (["stream of nothing"], Failure.UPSTREAM, ""),
        (["no chunk", "told"], Failure.UPSTREAM, ""),
        (["cut stream", "fails"], Failure.UPSTREAM, ""),
        (["cut stream"], Failure.UPSTREAM, ""),
        (["left", "told"], Failure.CLIENT_GONE, ""),
        (["left"], Failure.CLIENT_GONE, ""),
        (["fails", "told", "whole"], Failure.UPSTREAM, ""),
        ([], Failure.UNKNOWN, ""),
    ],
    ids=str,
)
async def test_it_ends_by_what_the_client_got(
    moves: list[str], failure: Failure | None, text: str
) -> None:
    end = await ended(*moves)
    assert (end.failure, answers.text(end.response)) == (failure, text)


@pytest.mark.parametrize(
    "moves",
    [["whole"], ["told of another", "whole"], ["stream", "told"], ["left", "told"]],
    ids=str,
)
async def test_what_was_answered_is_priced(moves: list[str]) -> None:
    play = Played()
    await play.play(*moves, LATE)
    (end,) = play.ends
    record = call_record(play.opened.record, end, play.meter)
    assert record.prompt_tokens == 10
    assert (record.status is CallStatus.SUCCESS) == (end.failure is None)


async def test_without_a_client_the_report_is_the_end() -> None:
    play = Played(has_client=False)
    await play.play("told", "told")
    assert [answers.text(end.response) for end in play.ends] == [GOT]


async def test_what_a_killed_worker_left_open_is_ended(database: AsyncEngine) -> None:
    now = datetime.now(UTC)
    before, after = now - timedelta(minutes=1), now + timedelta(minutes=1)
    made = {"r1": before, "r2": before, "r3": after}
    records = [request(name, created_at=at) for name, at in made.items()]
    await log.append(database, [*records, served_call("r2")])
    written: list[Any] = []
    journal = cast(Journal, SimpleNamespace(write=written.append))
    workers = Workers(Counters(), dict, dict)
    open_ones = LostRequests(database, journal, workers)

    await open_ones.end()
    assert written == [], "no worker runs, as far as is known"
    workers.join("w", cast(Hands, None), now)
    await open_ones.end()

    (lost,) = written
    assert (lost.call_id, lost.failure) == ("r1.0", Failure.UNKNOWN)
