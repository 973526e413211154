"""Models that fail, hang or break off: LiteLLM saves what it can, with the plugin as without."""

import httpx
import pytest

from tests.support.faults import Fault, Row, conclude
from tests.support.load import Load
from tests.support.proxy import Config
from tests.support.upstream import Reply, Script, Upstream
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

SOME = 30
TIMEOUT_SECONDS = 1.0
HANGING = Reply(delay_seconds=30.0)


@pytest.fixture
def config(config: Config) -> Config:
    """LiteLLM tries again, and gives a model so long; no model is left out for having failed."""
    config["router_settings"] = {
        "num_retries": 2,
        "timeout": TIMEOUT_SECONDS,
        "disable_cooldowns": True,
    }
    return config


def where(model: str, reply: Reply) -> Script:
    """That one model answers so, the others well."""
    return lambda asked, body: reply if asked == model else Reply(text=f"from {asked}")


@pytest.mark.parametrize(
    ("fault", "reply"),
    [(Fault.UPSTREAM_FAILS, Reply(status=500)), (Fault.UPSTREAM_HANGS, HANGING)],
    ids=["fails", "hangs"],
)
def test_a_model_that_fails_or_hangs(
    upstream: Upstream, proxy: WarmProxy, rows: list[Row], fault: Fault, reply: Reply
) -> None:
    """Each model in turn; with the retries of LiteLLM another one answers every request."""
    proxy.start()
    with Load(proxy) as load:
        for model in ("tiny", "middle", "huge"):
            upstream.script = where(model, reply)
            load.until_acknowledged(SOME)
    proxy.stop()

    conclude(rows, fault, proxy, load, "each model in turn, another one answers")
    served_by = {row["model"] for row in proxy.rows("SELECT DISTINCT model FROM calls")}
    assert len(served_by) > 1


def test_a_stream_that_breaks_off(upstream: Upstream, proxy: WarmProxy, rows: list[Row]) -> None:
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
        upstream.script = where("tiny", Reply(text="a long answer", is_cut=True))
        load.until_acknowledged(SOME)
        upstream.script = lambda model, body: Reply()
        load.until_acknowledged(SOME)
    proxy.stop()

    note = f"{load.tally.broken} streams broken off, as without the plugin"
    conclude(rows, Fault.STREAM_CUT, proxy, load, note, broken=True)
    assert load.tally.broken > 0


@pytest.mark.parametrize("fault", [Fault.STREAM_EMPTY, Fault.REDACTED])
def test_answers_that_are_empty_or_hidden(
    upstream: Upstream, config: Config, proxy: WarmProxy, rows: list[Row], fault: Fault
) -> None:
    """A stream of nothing is a failure that takes feedback; a right answer keeps its label."""
    is_empty = fault is Fault.STREAM_EMPTY
    config["litellm_settings"]["turn_off_message_logging"] = not is_empty
    nothing = Reply(raw=("text/event-stream", "data: [DONE]\n\n"))
    upstream.script = lambda _, body: nothing if is_empty and body.get("stream") else Reply()
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
    proxy.stop()

    conclude(rows, fault, proxy, load, "each has its end")
    counted = "SELECT COUNT(*) AS n FROM outcomes JOIN requests USING (request_id) WHERE "
    wrong = ["status IS NULL", "is_stream AND COALESCE(failure, '') <> 'upstream'"][: 1 + is_empty]
    assert [proxy.rows(counted + each)[0]["n"] for each in wrong] == [0] * len(wrong)


@pytest.mark.parametrize(
    ("fault", "reply", "allowed"),
    [
        (Fault.NO_CREDIT, Reply(status=400, failure="Your credit balance is too low."), 18),
        (Fault.RATE_LIMITED, Reply(status=429), 0),
    ],
)
def test_a_provider_that_is_out_of_credit_or_at_its_limits(
    upstream: Upstream, proxy: WarmProxy, rows: list[Row], fault: Fault, reply: Reply, allowed: int
) -> None:
    """Two of three models; each of six clients may meet one before it is passed over."""
    proxy.start()
    with Load(proxy) as load:
        upstream.script = lambda asked, _: Reply() if asked == "middle" else reply
        load.until_acknowledged(4 * SOME)
    proxy.stop()

    conclude(rows, fault, proxy, load, "another one answers", broken=True, allowed=allowed)


def test_a_stream_that_breaks_off_ends_as_without_the_plugin(
    upstream: Upstream, config: Config, proxy: WarmProxy
) -> None:
    config["model_list"] += [{**each, "model_name": "plain"} for each in config["model_list"]]
    upstream.script = lambda model, body: Reply(text="a long answer", is_cut=True)
    proxy.start()
    with proxy.client("sk-alice") as client:
        ends = [end_of_stream(client, group) for group in ("zoo", "plain")]

    assert ends[0] == ends[1]


def end_of_stream(client: httpx.Client, group: str) -> tuple[int, str]:
    """Its status and its last line, without what names the group and the model."""
    body = {"model": group, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    with client.stream("POST", "/v1/chat/completions", json=body) as stream:
        lines = [line for line in stream.iter_lines() if line]
    return stream.status_code, lines[-1]
