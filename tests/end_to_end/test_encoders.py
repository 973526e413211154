"""A real proxy with an encoder in a thread: a transformer, and others."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from litellm_messplus.core.encoder import Conversation
from litellm_messplus.core.engine import Engine, Question
from litellm_messplus.core.prompt import Prompt
from litellm_messplus.core.snapshot import load
from litellm_messplus.encoders.lookup import load_encoder
from litellm_messplus.restore import restore
from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import load_settings
from litellm_messplus.store.database import create_engine
from tests.support.proxy import PAPER, Config, Proxy, ask, zoo_config
from tests.support.tiny_encoder import DIMENSION, save_transformer
from tests.support.upstream import Reply, Upstream

pytestmark = pytest.mark.end_to_end

ZOOS: list[Config] = [{**PAPER, "c": 0.3}, {"alpha": 0.7}]


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
