"""What `messplus replay` shows is what the running proxy does: the same decisions, one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from litellm_messplus.costs.token_estimator import COMPLETION_TOKENS
from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.driver import ZOO, Run, build_engine
from litellm_messplus.replay.recording import Prompts, Recording
from litellm_messplus.replay.stress import Stress, answers
from litellm_messplus.replay.summary import Outcome
from litellm_messplus.settings.schema import ZooSettings
from tests.support.proxy import Config, Proxy, deployment, until, zoo_config
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
    said = answers(recording.satisfied, MODELS, Stress(), np.random.default_rng(0))
    return Run(build_engine(recording, settings, HashedNgrams(), SEED), recording, said).go()


@pytest.fixture(params=[{"alpha": 0.7}, {"alpha": 0.7, "policy": "paper", "V": 0.02, "c": 0.5}])
def zoo(request: pytest.FixtureRequest) -> Config:
    """One a policy."""
    chosen: Config = request.param
    return chosen


@pytest.fixture
def proxy(upstream: Upstream, recording: Recording, zoo: Config, tmp_path: Path) -> Iterator[Proxy]:
    config = zoo_config(upstream.url, tmp_path, seed=SEED)
    config["model_list"] = [_candidate(model, upstream.url) for model in MODELS]
    config["messplus"]["zoos"] = {ZOO: {**zoo, "largest": recording.largest}}
    upstream.script = lambda model, body: _reply(recording, model, body)
    running = Proxy(config, tmp_path).start()
    yield running
    running.stop()


def _candidate(model: str, url: str) -> Config:
    """Priced by the completion token alone, as the replay prices a recording."""
    found = deployment(ZOO, model, url, 0.0)
    found["model_info"].update(
        output_cost_per_token=PRICES[MODELS.index(model)], messplus={"candidate": model}
    )
    return found


def _reply(recording: Recording, model: str, body: dict[str, Any]) -> Reply:
    row = recording.prompts.texts.index(body["messages"][-1]["content"])
    place = MODELS.index(model)
    return Reply(completion_tokens=int(recording.cost[row, place] / PRICES[place]))


def test_the_running_proxy_decides_as_the_replay_does(
    proxy: Proxy, recording: Recording, zoo: Config
) -> None:
    with proxy.client() as client:
        live = [_live(client, recording, row) for row in range(REQUESTS)]

    expected = replayed(recording, zoo)
    assert [request["chosen"] for request in live] == [MODELS[m] for m in expected.served]
    assert expected.queue is not None
    assert [request["queue"] for request in live] == expected.queue.tolist()
    called = [{call["candidate"] for call in request["calls"]} for request in live]
    assert called == [{MODELS[m] for m in row.nonzero()[0]} for row in expected.calls]
    assert len(set(expected.served.tolist())) > 1


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

    until(is_settled, 20)
    for call in shown["calls"]:
        satisfied = bool(recording.satisfied[row, MODELS.index(call["candidate"])])
        verdict = {"id": request_id, "call_id": call["call_id"], "satisfied": satisfied}
        client.post("/messplus/feedback", json=verdict).raise_for_status()
    return shown
