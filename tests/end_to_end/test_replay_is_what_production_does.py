"""What `messplus replay` shows is what the running proxy does: the same decisions, one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.costs.usage import COMPLETION_TOKENS
from litellm_messplus.replay.recording import Prompts, Recording
from litellm_messplus.replay.run import ZOO, Run, build_engine
from litellm_messplus.replay.summary import Outcome
from litellm_messplus.settings.schema import ZooSettings
from tests.support.patience import until
from tests.support.proxy import Config, Proxy, deployment, zoo_config
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

MODELS = ("tiny", "middle", "huge")
RATES = (0.4, 0.7, 0.9)
PRICES = (2.0**-5, 2.0**-3, 2.0**-1)
"""Of a completion token: powers of two, by which tokens are multiplied and divided exactly."""
REQUESTS = 80
SEED = 5


@pytest.fixture(scope="module")
def recording() -> Recording:
    """Of our own making: costs are whole numbers of tokens, for an upstream reports no others. The
    first request's have the length that is expected before any call, so that the replay's prices
    are these."""
    draws = np.random.default_rng(1)
    satisfied = draws.random((REQUESTS, len(MODELS))) < RATES
    tokens = draws.integers(60, 140, (REQUESTS, len(MODELS)))
    tokens[0] = COMPLETION_TOKENS
    kinds = ("sort these words", "what is the sum of", "translate into French")
    texts = [f"{kinds[number % 3]}: {number}" for number in range(REQUESTS)]
    return Recording(
        name="made",
        models=MODELS,
        unit="tokens",
        prompts=Prompts.encode(texts, HashedNgrams()),
        prompt=np.arange(REQUESTS),
        satisfied=satisfied.astype(float),
        cost=tokens * np.array(PRICES),
    )


def replayed(recording: Recording, zoo: Config) -> Outcome:
    settings = ZooSettings.model_validate(zoo)
    engine = build_engine(recording, settings, HashedNgrams(), SEED)
    return Run(engine, recording, recording.satisfied).go()


@pytest.fixture(params=[{"alpha": 0.7}, {"alpha": 0.7, "policy": "paper", "V": 0.02, "c": 0.5}])
def zoo(request: pytest.FixtureRequest) -> Config:
    """One a policy."""
    chosen: Config = request.param
    return chosen


@pytest.fixture
def expected(recording: Recording, zoo: Config) -> Outcome:
    """The outcome of the replay."""
    return replayed(recording, zoo)


class InTurn:
    """The answers of a request's calls, given one after another as the replay ends them: first the
    served one, then from the most expensive on, each when the one before it is in the log. For the
    lengths of answers are learned in the log's order."""

    def __init__(self, recording: Recording, expected: Outcome) -> None:
        self.proxy: Proxy | None = None
        self.logged = 0
        self._recording = recording
        self._expected = expected

    def answer(self, model: str, body: dict[str, Any]) -> Reply:
        """Script an upstream: ``logged`` calls of earlier requests are in the log."""
        row = self._recording.prompts.texts.index(body["messages"][-1]["content"])
        place = MODELS.index(model)
        before = self.logged + self._turn(row, place)
        tokens = int(self._recording.cost[row, place] / PRICES[place])
        return Reply(completion_tokens=tokens, is_due=lambda: self._are_logged(before))

    def _turn(self, row: int, place: int) -> int:
        served = int(self._expected.served[row])
        others = [m for m in self._expected.calls[row].nonzero()[0][::-1].tolist() if m != served]
        return 1 + others.index(place) if place in others else 0

    def _are_logged(self, calls: int) -> bool:
        assert self.proxy is not None
        return calls == self.logged or len(self.proxy.rows("SELECT 1 FROM calls")) >= calls


@pytest.fixture
def in_turn(recording: Recording, expected: Outcome) -> InTurn:
    return InTurn(recording, expected)


@pytest.fixture
def proxy(
    upstream: Upstream, recording: Recording, zoo: Config, in_turn: InTurn, tmp_path: Path
) -> Iterator[Proxy]:
    # Inside, so that the encoder of the brain can number the requests of its worker.
    config = zoo_config(upstream.url, tmp_path, seed=SEED, brain="inside")
    config["model_list"] = [_candidate(model, upstream.url) for model in MODELS]
    config["messplus"]["encoder"] = "tests.support.numbered:Numbered"
    config["messplus"]["zoos"] = {ZOO: {**zoo, "largest": recording.largest}}
    upstream.script = in_turn.answer
    in_turn.proxy = Proxy(config, tmp_path).start()
    yield in_turn.proxy
    in_turn.proxy.stop()


def _candidate(model: str, url: str) -> Config:
    """Priced by the completion token alone, as the replay prices a recording."""
    found = deployment(ZOO, model, url, 0.0)
    found["model_info"].update(
        output_cost_per_token=PRICES[MODELS.index(model)], messplus={"candidate": model}
    )
    return found


def test_the_running_proxy_decides_as_the_replay_does(
    proxy: Proxy, recording: Recording, expected: Outcome, in_turn: InTurn
) -> None:
    live = []
    with proxy.client() as client:
        for row in range(REQUESTS):
            live.append(_live(client, recording, row))
            in_turn.logged += len(live[-1]["calls"])

    assert [request["chosen"] for request in live] == [MODELS[m] for m in expected.served]
    assert expected.queue is not None
    assert [request["queue"] for request in live] == expected.queue.tolist()
    called = [{call["candidate"] for call in request["calls"]} for request in live]
    assert called == [{MODELS[m] for m in row.nonzero()[0]} for row in expected.calls]
    assert len(set(expected.served.tolist())) > 1
    in_order = [row["call_id"] for row in proxy.rows("SELECT call_id FROM calls ORDER BY position")]
    assert in_order == sorted(in_order, key=_number)


def _number(call_id: str) -> tuple[int, int]:
    request, place = call_id.split(".")
    return int(request), int(place)


def _live(client: httpx.Client, recording: Recording, row: int) -> dict[str, Any]:
    """Ask, wait for every call to be logged, and judge the calls in the order of the replay."""
    prompt = recording.prompts.texts[row]
    body = {"model": ZOO, "messages": [{"role": "user", "content": prompt}]}
    answer = client.post("/v1/chat/completions", json=body).raise_for_status()
    request_id = answer.headers["x-messplus-request-id"]
    shown: dict[str, Any] = {}

    def is_settled() -> bool:
        shown.update(client.get(f"/messplus/requests/{request_id}").json())
        return bool(len(shown["calls"]) == 1 + shown["exploration_calls"])

    until(is_settled)
    for call in shown["calls"]:
        satisfied = bool(recording.satisfied[row, MODELS.index(call["candidate"])])
        verdict = {"id": request_id, "call_id": call["call_id"], "satisfied": satisfied}
        client.post("/messplus/feedback", json=verdict).raise_for_status()
    return shown
