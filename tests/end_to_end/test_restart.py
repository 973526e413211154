"""State is a fold of the log: nothing acknowledged is lost, whatever ends the process."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.snapshot import load
from litellm_messplus.core.surface import read_surface
from litellm_messplus.restore import restore
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store.database import create_engine
from tests.support.patience import until
from tests.support.proxy import PAPER, Proxy, ask, quick, zoo_config
from tests.support.traffic import Traffic, assert_every_acknowledged_label_is_there
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

ZOOS: list[dict[str, Any]] = [{**PAPER, "c": 0.6}, {"alpha": 0.7}]


def fresh_engine(proxy: Proxy) -> Engine:
    """An engine that has seen nothing, as a start of the proxy builds it."""
    zoos = build_zoos(load_settings(proxy.config), proxy.config["model_list"])
    return Engine(zoos["zoo"], HashedNgrams(), seed=0)


def fold_of_the_log(proxy: Proxy) -> Engine:
    """The whole log, folded from its first record into an engine; snapshots are not read."""
    engine = fresh_engine(proxy)

    async def fold() -> None:
        database = create_engine(f"sqlite+aiosqlite:///{proxy.folder}/messplus.db")
        connection = proxy.database()
        connection.execute("DELETE FROM snapshots")
        connection.commit()
        connection.close()
        await restore(database, {"zoo": engine})
        await database.dispose()

    asyncio.run(fold())
    return engine


@pytest.mark.parametrize("zoo", ZOOS, ids=["paper", "adaptive"])
def test_sigkill_under_traffic_loses_nothing_acknowledged_and_routing_goes_on(
    upstream: Upstream, tmp_path: Path, zoo: dict[str, Any]
) -> None:
    upstream.script = lambda model, body: Reply(text=f"from {model}")
    config = zoo_config(upstream.url, tmp_path, zoo=zoo)
    proxy = Proxy(quick(config, tmp_path, learner={"snapshot_every": 40}), tmp_path).start()
    traffic = Traffic([proxy])
    until(lambda: len(traffic.acknowledged) > 60, lambda: proxy.log[-3000:])
    proxy.kill()
    traffic.end()
    assert_every_acknowledged_label_is_there(proxy, traffic)
    assert proxy.rows("SELECT * FROM snapshots"), "no snapshot to start from: the test is blunt"
    requests = proxy.rows("SELECT COUNT(*) AS n FROM requests")[0]["n"]
    apart = proxy.rows("SELECT * FROM requests WHERE expected_t <> t")
    assert apart == [], "one worker alone knows every number beforehand"

    proxy.start()
    with proxy.client() as client:
        answer = ask(client, "after the kill")
        request_id = answer.headers["x-messplus-request-id"]
        shown = client.get(f"/messplus/requests/{request_id}").json()
    proxy.kill()

    # What it decided from is the fold of the log before it: t, queue and predictions.
    connection = proxy.database()
    position = shown_position(proxy, request_id)
    for table in ("requests", "calls", "labels"):
        connection.execute(f"DELETE FROM {table} WHERE position >= ?", (position,))
    connection.execute("UPDATE log_head SET position = ?", (position - 1,))
    connection.commit()
    connection.close()
    engine = fold_of_the_log(proxy)
    asked = Conversation.of_text("after the kill")
    situation = engine.situation(
        Question(
            "asked again",
            engine.zoo.levels["default"],
            Prompt(HashedNgrams().encode([asked.text])[0], read_surface(asked)),
            len(asked.text),
            engine.zoo.candidates,
        )
    )
    assert shown["t"] == situation.t == requests + 1
    assert shown["queue"] == situation.queue
    assert shown["estimated_satisfaction"] == {
        estimate.candidate: estimate.satisfaction for estimate in situation.estimates
    }
    assert shown["estimated_cost"] == {
        estimate.candidate: estimate.cost for estimate in situation.estimates
    }


def shown_position(proxy: Proxy, request_id: str) -> int:
    (row,) = proxy.rows("SELECT position FROM requests WHERE request_id = ?", request_id)
    return int(row["position"])


def test_sigterm_flushes_everything(upstream: Upstream, tmp_path: Path) -> None:
    upstream.script = lambda model, body: Reply(text=f"from {model}", delay_seconds=0.3)
    config = zoo_config(upstream.url, tmp_path, zoo={**PAPER, "c": 10.0})
    proxy = Proxy(config, tmp_path).start()
    with proxy.client() as client:
        answers = [ask(client, f"request {number}") for number in range(5)]
    proxy.stop()

    assert [answer.status_code for answer in answers] == [200] * 5
    assert len(proxy.rows("SELECT * FROM requests")) == 5
    # Every request explored: one served call and two exploration calls each.
    assert len(proxy.rows("SELECT * FROM calls WHERE status = 'success'")) == 15
    (snapshot,) = proxy.rows("SELECT * FROM snapshots ORDER BY position DESC LIMIT 1")
    assert snapshot["position"] == proxy.rows("SELECT position FROM log_head")[0]["position"]
    saved = load(snapshot["state"], fresh_engine(proxy).empty_state())
    folded = fold_of_the_log(proxy).state
    assert saved.requests == folded.requests
    assert saved.estimators == folded.estimators
    assert saved.policy.plain() == folded.policy.plain()
    arrays = folded.policy.arrays()
    found = saved.policy.arrays().items()
    assert all(np.array_equal(a, arrays[name], equal_nan=True) for name, a in found)
