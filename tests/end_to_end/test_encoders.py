"""A real proxy with an encoder that has a process of its own: a transformer, and others."""

import asyncio
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Question
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.encoders.process import WORKER
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.restore import restore
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import load_settings
from litellm_messplus.state.snapshot import load
from litellm_messplus.store.database import create_engine
from tests.support import metered_worker
from tests.support.patience import PATIENT, until
from tests.support.processes import children_of, is_running
from tests.support.proxy import PAPER, Config, Proxy, ask, zoo_config
from tests.support.tiny_encoder import DIMENSION, save_transformer
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

DEADLINE = 8.0
"""What is in time must be so on a busy machine too; what is slow is waited for as long."""
LET_GO = "let_go"
"""The file, beside the proxy's configuration, that slow prompts wait for."""
ZOOS: list[Config] = [{**PAPER, "c": 0.3}, {"alpha": 0.7}]
SLOW = f"""
import time
from pathlib import Path

from litellm_messplus.conformance.encoders import FakeEncoder


class Slow(FakeEncoder):
    def __init__(self):
        super().__init__(is_fast=False)

    def encode(self, texts):
        while any("slow" in text for text in texts) and not Path({LET_GO!r}).exists():
            time.sleep(0.01)
        if any("broken" in text for text in texts):
            raise RuntimeError("the encoder is broken")
        return super().encode(texts)
"""


def with_slow_encoder(upstream: Upstream, folder: Path) -> Proxy:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    (folder / "slow_encoder.py").write_text(SLOW)
    config = zoo_config(
        upstream.url, folder, encoder="slow_encoder:Slow", deadline_seconds=DEADLINE
    )
    return Proxy(config, folder).start()


def fresh_engine(proxy: Proxy) -> Engine:
    settings = load_settings(proxy.config)
    zoo = build_zoos(settings, proxy.config["model_list"])["zoo"]
    return Engine(zoo, load_encoder(settings.encoder), seed=0)


def fold_of_the_log(proxy: Proxy) -> Engine:
    """Of its first record on: the database of a snapshot that fits no engine is folded whole."""
    engine = fresh_engine(proxy)

    async def fold() -> None:
        database = create_engine(f"sqlite+aiosqlite:///{proxy.folder}/messplus.db")
        await restore(database, {"zoo": engine})
        await database.dispose()

    asyncio.run(fold())
    return engine


def serve_and_judge(proxy: Proxy, count: int) -> None:
    with proxy.client() as client:
        for number in range(count):
            prompt = ("Sort these numbers: 3 1 2", "Write a poem about rain")[number % 2]
            answer = ask(client, f"{prompt}, and do it for the {number}. time")
            verdict = {
                "id": answer.headers["x-messplus-request-id"],
                "satisfied": "huge" in answer.text or number % 2 == 0,
            }
            client.post("/messplus/feedback", json=verdict).raise_for_status()


@pytest.mark.parametrize("zoo", ZOOS, ids=["paper", "adaptive"])
def test_a_transformer_routes_learns_and_goes_on_after_a_restart(
    upstream: Upstream, tmp_path: Path, zoo: Config
) -> None:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    encoder = save_transformer(tmp_path / "tiny-bert")
    config = zoo_config(upstream.url, tmp_path, zoo=zoo, encoder=str(encoder))
    proxy = Proxy(config, tmp_path).start()
    serve_and_judge(proxy, 24)
    proxy.stop()

    rows = proxy.rows("SELECT * FROM requests ORDER BY position")
    assert len(rows) == 24
    assert {len(row["features"]) for row in rows} == {4 * DIMENSION}
    assert all(0 < row["encode_seconds"] < row["decision_seconds"] for row in rows)
    live = load_encoder(str(encoder))
    text = live.read(Conversation.of_text("Write a poem about rain, and do it for the 23. time"))
    own = np.frombuffer(rows[-1]["features"], "<f4")
    assert own == pytest.approx(live.encode([text])[0], abs=1e-5)
    (snapshot,) = proxy.rows("SELECT * FROM snapshots ORDER BY position DESC LIMIT 1")
    saved = load(snapshot["state"], fresh_engine(proxy).empty_state())
    connection = proxy.database()
    connection.execute("DELETE FROM snapshots")
    connection.commit()
    connection.close()
    folded = fold_of_the_log(proxy)
    arrays = folded.state.policy.arrays()
    empty = fresh_engine(proxy).state.policy.arrays()
    assert any(not np.array_equal(a, empty[name]) for name, a in arrays.items())
    found = saved.policy.arrays().items()
    assert all(np.array_equal(a, arrays[name], equal_nan=True) for name, a in found)

    proxy.start()
    with proxy.client() as client:
        answer = ask(client, "after the restart")
        shown = client.get(f"/messplus/requests/{answer.headers['x-messplus-request-id']}").json()
    proxy.stop()
    (last,) = proxy.rows("SELECT features, surface FROM requests ORDER BY position DESC LIMIT 1")
    situation = folded.situation(
        Question(
            "asked again",
            folded.zoo.levels["default"],
            Prompt(np.frombuffer(last["features"], "<f4"), np.frombuffer(last["surface"], "<f4")),
            len("after the restart"),
            folded.zoo.candidates,
        )
    )
    assert (shown["t"], shown["queue"]) == (25, situation.queue)
    assert shown["estimated_satisfaction"] == {
        estimate.candidate: estimate.satisfaction for estimate in situation.estimates
    }


@pytest.mark.counts("encoder_failures")
def test_no_request_waits_for_a_slow_or_broken_encoder(upstream: Upstream, tmp_path: Path) -> None:
    proxy = with_slow_encoder(upstream, tmp_path)
    try:
        with proxy.client() as client:
            asked = [ask(client, prompt) for prompt in ("quick", "slow", "quick", "slow again")]
            (tmp_path / LET_GO).touch()
            until(lambda: "messplus_encoder_prompts 2.0\n" in metrics_of(client))
            asked += [ask(client, prompt) for prompt in ("broken", "slow", "new")]
            counts = client.get("/messplus/health").json()
            # A reading is shared for as long as it took.
            until(lambda: "messplus_encoder_failures 1.0\n" in metrics_of(client))
            metrics = metrics_of(client)
    finally:
        proxy.stop()

    assert all("x-messplus-model" in answer.headers for answer in asked)
    rows = proxy.rows("SELECT * FROM requests ORDER BY position")
    is_late = [row["features"] is None for row in rows]
    # The second "quick" is from the cache, and so is the "slow" that was encoded for nobody.
    assert is_late == [False, True, False, True, True, False, False]
    assert [row["encode_seconds"] is None for row in rows] == is_late
    assert counts == {"encoder_failures": 1, "features_late": 3}
    assert "the encoder is broken" in proxy.log
    assert "messplus_encoder_late 2.0" in metrics


def metrics_of(client: httpx.Client) -> str:
    return client.get("/messplus/metrics").text


METERED = f"""
from litellm_messplus.encoders import process

process.WORKER = {Path(metered_worker.__file__).stem!r}

from litellm_messplus.plugin import instance
"""


@pytest.mark.parametrize("has_sensor", [True, False])
def test_what_a_transformer_takes_is_measured_where_there_is_a_sensor(
    upstream: Upstream, tmp_path: Path, has_sensor: bool
) -> None:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    encoder = save_transformer(tmp_path / "tiny-bert")
    config = zoo_config(upstream.url, tmp_path, encoder=str(encoder))
    if has_sensor:
        shutil.copy(metered_worker.__file__, tmp_path)
        (tmp_path / "metered.py").write_text(METERED)
        config["litellm_settings"]["callbacks"] = ["metered.instance"]
    proxy = Proxy(config, tmp_path).start()
    try:
        with proxy.client() as client:
            for prompt in ("Sort 3 1 2", "Write a poem", "Sort 3 1 2"):
                ask(client, prompt).raise_for_status()
            served = "SELECT * FROM calls WHERE role = 'served'"
            until(lambda: len(proxy.rows(served)) == 3)
            status = client.get("/messplus/status").json()
            metrics = client.get("/messplus/metrics").text
    finally:
        proxy.stop()

    found = [row["encode_joules"] for row in proxy.rows("SELECT * FROM requests ORDER BY position")]
    shown = status["levels"][0]["overall"]["overhead"]["predicting_joules"]
    assert ("messplus_encoder_joules " in metrics) == has_sensor
    assert ("messplus_predicting_joules" in metrics) == has_sensor
    if not has_sensor:
        assert (found, shown) == ([None] * 3, None)
        return
    assert 0.0 < found[0] < 5.0 * metered_worker.WATTS
    assert found[1] > 0.0
    assert found[2] == 0.0  # from the cache
    assert shown == pytest.approx(sum(found) / 3)


def has_features(proxy: Proxy, client: httpx.Client) -> bool:
    """Whether one more request is decided by the features of its prompt."""
    asked = ask(client, f"after {time.monotonic()}")
    query = "SELECT features FROM requests WHERE request_id = ?"
    (row,) = proxy.wait_for_rows(query, 1, asked.headers["x-messplus-request-id"])
    return row["features"] is not None


def process_of_the_encoder(proxy: Proxy) -> int:
    (found,) = children_of(proxy.process_id, WORKER)
    return found


@pytest.mark.counts("encoder_failures")
def test_requests_go_on_while_a_killed_encoder_is_replaced(
    upstream: Upstream, tmp_path: Path
) -> None:
    proxy = with_slow_encoder(upstream, tmp_path)
    try:
        first = process_of_the_encoder(proxy)
        with proxy.client() as client:
            ask(client, "before")
            os.kill(first, signal.SIGKILL)
            until(lambda: has_features(proxy, client))
            ask(client, "and on").raise_for_status()
            counts = client.get("/messplus/health").json()
        second = process_of_the_encoder(proxy)
    finally:
        proxy.stop()

    rows = proxy.rows("SELECT * FROM requests ORDER BY position")
    is_without = [row["features"] is None for row in rows]
    lost = is_without.count(True)
    assert lost >= 1
    assert is_without == [False] + [True] * lost + [False] * (len(rows) - 1 - lost)
    assert counts["features_late"] == lost
    assert counts["encoder_failures"] >= 1
    assert "the encoder is lost" in proxy.log
    assert first != second
    assert not is_running(second)


def test_a_killed_proxy_leaves_no_encoder_behind(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "slow_encoder.py").write_text(SLOW)
    config = zoo_config(upstream.url, tmp_path, encoder="slow_encoder:Slow")
    proxy = Proxy(config, tmp_path).start()
    encoder = process_of_the_encoder(proxy)
    proxy.kill()

    until(lambda: not is_running(encoder))


@pytest.mark.parametrize(
    ("encoder", "said"),
    [("no-such-folder/no-such-model", "no-such-model"), ("slow_encoder:Missing", "Missing")],
)
def test_an_encoder_that_cannot_be_loaded_stops_the_start(
    upstream: Upstream, tmp_path: Path, encoder: str, said: str
) -> None:
    (tmp_path / "slow_encoder.py").write_text(SLOW)
    config: dict[str, Any] = zoo_config(upstream.url, tmp_path, encoder=encoder)
    proxy = Proxy(config, tmp_path)

    assert proxy.launch().wait(PATIENT) == 1
    assert "messplus.encoder: given" in proxy.log
    assert said in proxy.log
    assert "Traceback" not in proxy.log
