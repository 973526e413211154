"""The judge: hanging, away, and back. Requests and feedback go on."""

from collections.abc import Iterator

import pytest

from tests.support.faults import Fault, Row, conclude
from tests.support.judge import JUDGE, ScriptedJudge
from tests.support.load import Load
from tests.support.patience import until
from tests.support.proxy import Config, deployment, quick
from tests.support.upstream import Reply, Upstream
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

SOME = 30
GRADED = "SELECT 1 FROM labels WHERE kind = 'judge'"
CRITIC = ScriptedJudge(good="from huge")


@pytest.fixture
def judge() -> Iterator[Upstream]:
    """A server of its own."""
    serving = Upstream(script=lambda model, body: Reply(CRITIC.reply(body)))
    serving.start()
    yield serving
    serving.stop()


def test_a_judge_that_hangs_or_is_away(
    config: Config, proxy: WarmProxy, judge: Upstream, rows: list[Row]
) -> None:
    quick(config, proxy.folder, asking={"timeout_seconds": 1.0})
    grading = {"how": "grade", "judge": JUDGE}
    config["messplus"]["zoos"]["zoo"] |= {"buy_labels": grading, "label_rate": 1.0}
    config["model_list"].append(deployment(JUDGE, JUDGE, judge.url, 1e-6))
    answers, hangs = judge.script, Reply(delay_seconds=5.0)
    proxy.start()
    with Load(proxy) as load:
        until_more(proxy, GRADED)
        judge.script = lambda model, body: hangs
        load.until_acknowledged(SOME)
        judge.stop()
        load.until_acknowledged(SOME)
        judge.script = answers
        judge.start()
        until_more(proxy, GRADED)
    with proxy.client("sk-operator") as operator:
        counts = operator.get("/messplus/health").json()
    proxy.stop()

    conclude(rows, Fault.JUDGE, proxy, load, "goes on grading when it is back")
    assert counts["judge_failures"] >= 2


def until_more(proxy: WarmProxy, query: str) -> None:
    """Wait until the query gives more rows than now."""
    before = len(proxy.rows(query))
    until(lambda: len(proxy.rows(query)) > before, lambda: proxy.log[-3000:])
