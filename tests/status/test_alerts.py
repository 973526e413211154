"""Which alerts are raised, and that each is reported once when it comes and once when it goes."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.core import adaptive
from litellm_messplus.core.decision import Estimate, Reason, Situation
from litellm_messplus.core.trying import Knowledge
from litellm_messplus.figures.figure import Plain
from litellm_messplus.labels.agreement import Agreement, PositionBias
from litellm_messplus.status.alerts import (
    AlertKind,
    AlertLog,
    RecentFailures,
    alert,
    failure_alerts,
    subject,
)
from litellm_messplus.status.build import build_status
from litellm_messplus.status.figures import LiveLevel, Source
from litellm_messplus.status.reading import RECENT_DECISIONS
from litellm_messplus.store.key_activity import KeyStatus
from tests.status.conftest import read
from tests.support.history import History, migrated
from tests.support.seeded import Case, add
from tests.support.statuses import EMPTY, GRADING, KEY, NEWEST, status, totals


def kinds(found: Plain) -> list[AlertKind]:
    return [each["kind"] for each in found["alerts"]]


def test_all_is_well() -> None:
    assert kinds(status()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"rate": 0.6}, AlertKind.BELOW),
        ({"judged": 0, "rate": None, "mean_alpha": None}, AlertKind.NO_FEEDBACK),
        ({"judged": 50}, AlertKind.THIN_EVIDENCE),
        ({"is_out_of_reach": True}, AlertKind.OUT_OF_REACH),
        ({"live": LiveLevel(queue=3.0, is_within_reach=False)}, AlertKind.OUT_OF_REACH),
        ({"counters": {"journal_failures": 2, "deadlines_missed": 1}}, AlertKind.JOURNAL),
        ({"counters": {"brain_away": 2}}, AlertKind.BRAIN),
        ({"counters": {"answers_hidden": 2}}, AlertKind.HIDDEN),
    ],
)
def test_each_reason_raises_its_alert_alone(changes: Any, expected: AlertKind) -> None:
    assert kinds(status(**changes)) == [expected]


def test_the_newest_requests_alone_may_miss_the_promise() -> None:
    last = totals(requests=500, judged=500, rate=0.5)
    found = status(last=last, rate=0.75)

    assert kinds(found) == [AlertKind.BELOW]
    assert found["alerts"][0]["message"] == (
        "below the promise over the last 500 requests: "
        "50.0 % satisfied (45.6 to 54.4 %) of 500 judged, promised 70.0 %"
    )


STOPPED = replace(GRADING, weight=0.0, agreement=Agreement(20, 17, 13, 15))


@pytest.mark.parametrize(
    ("live", "below"),
    [(None, "too low"), (LiveLevel(queue=0.0, least_agreement=0.2), "below 0.2")],
)
def test_a_judge_that_stopped_is_reported_once(live: LiveLevel | None, below: str) -> None:
    found = status(grading=STOPPED, live=live)
    (judge,) = found["judges"]

    assert (judge["counts"], judge["note"]) == (False, f"does not count: agreement 0.07 {below}")
    assert kinds(found) == [AlertKind.JUDGE_STOPPED]
    assert subject(found["alerts"][0]) == KEY[0]
    assert found["alerts"][0]["message"] == f"the judge gpt-judge {judge['note']}"


def test_a_judge_that_is_left_out_on_purpose_is_no_alert() -> None:
    found = status(grading=replace(GRADING, is_left_out=True))
    (judge,) = found["judges"]

    assert (judge["counts"], kinds(found)) == (False, [])
    assert judge["note"] == "does not count: judges are left out of the precedence"


@pytest.mark.parametrize(
    ("changes", "counts", "note"),
    [
        ({}, True, "counts: agreement 0.80"),
        ({"weight": None, "agreement": Agreement()}, None, "has graded nothing yet"),
        (
            {"agreement": Agreement(9, 1, 0, 0)},
            True,
            "counts: agreement unknown, 10 of 30 calls that users judged too",
        ),
    ],
)
def test_the_note_of_a_judge(changes: Any, counts: bool | None, note: str) -> None:
    found = status(grading=replace(GRADING, **changes))
    (judge,) = found["judges"]

    assert (judge["counts"], judge["note"], kinds(found)) == (counts, note, [])


def test_a_judge_that_prefers_a_place_is_noted_for_that() -> None:
    found = status(grading=replace(GRADING, weight=0.0, position=PositionBias(60, 2)))
    (judge,) = found["judges"]

    assert judge["note"].startswith("does not count: it prefers the answer shown first by +0.94")
    assert kinds(found) == [AlertKind.JUDGE_STOPPED]


def test_a_key_that_says_more_than_counts_is_named_by_its_hash() -> None:
    held = KeyStatus(*KEY, "0123abcd", 10, verdicts=40, counting=8, unsatisfied=1.0, held=30)
    usual = replace(held, key_hash="usual", verdicts=8, held=0)
    found = status(keys=[held, usual])

    (only,) = found["alerts"]
    assert (only["kind"], only["zoo"], only["service_level"]) == (AlertKind.KEY_HELD, *KEY)
    assert only["message"] == "keys said more than counts: 0123abcd (30 of 40 labels)"


def test_what_labels_cost_is_shown_next_to_what_is_saved() -> None:
    (costs,) = status()["label_costs"]

    assert tuple(costs[name] for name in ("zoo", "saved", "unseen", "judging")) == (
        KEY[0],
        31.0,
        1.0,
        1.25,
    )


def test_few_requests_are_no_reason_to_ask_for_feedback() -> None:
    assert kinds(status(requests=99, judged=0, rate=None, mean_alpha=None)) == []


def test_what_the_engine_says_counts_more_than_the_log() -> None:
    found = status(live=LiveLevel(queue=3.0, is_within_reach=True), is_out_of_reach=True)
    level = found["levels"][0]

    assert kinds(found) == []
    assert (level["queue"], level["price"], level["source"]) == (3.0, 0.02, Source.ENGINE)


def test_a_promise_is_shown_before_its_first_request() -> None:
    live = {KEY: LiveLevel(queue=0.0, alpha=0.8, cost_unit="usd")}
    found = build_status(EMPTY, 500, live)["levels"][0]

    assert (found["alpha"], found["overall"]["satisfaction"]["requests"]) == (0.8, 0)
    assert found["overall"]["satisfaction"]["evidence"] == "no requests yet"


def test_a_promise_that_is_configured_no_longer_is_left_out() -> None:
    rows = replace(EMPTY, newest={("old", "default"): NEWEST})

    assert build_status(rows, 500, live={})["levels"] == []


def test_nothing_can_hold_alpha_when_most_of_the_newest_decisions_say_so(tmp_path: Path) -> None:
    half = RECENT_DECISIONS // 2
    assert not is_alerted(tmp_path / "a.db", [True] * 50 + [False] * half)
    assert is_alerted(tmp_path / "b.db", [True] * 50 + [False] * (half + 1))
    assert not is_alerted(tmp_path / "c.db", [False] * 50 + [True] * half)


def is_alerted(path: Path, within_reach: list[bool]) -> bool:
    """Every decision is followed by a probe, which does not say."""
    history = History()
    for is_within_reach in within_reach:
        add(history, Case(is_within_reach=is_within_reach))
        add(history, Case(is_probe=True))
    migrated(path, history)
    return AlertKind.OUT_OF_REACH in kinds(read(path))


def test_the_policy_says_so_where_nothing_can_hold_alpha() -> None:
    known = Knowledge(rate=[0.3], deviation=[0.0], optimism=[0.0], is_blank=False)
    estimates = (Estimate("a", 1.0, 1.0, 0.3),)
    situation = Situation(500, 0.9, 0.0, 0.0, estimates, "a", 0.99, 0.5)
    decision = adaptive.decide(situation, known, 0.0)

    assert not decision.is_within_reach
    assert decision.reason is Reason.OUT_OF_REACH


def test_no_failures_no_alert() -> None:
    assert failure_alerts({"journal_failures": 0, "deadlines_missed": 3}) == []


def test_gates_that_failed_stand_as_an_alert_that_says_who_served() -> None:
    (found,) = failure_alerts({"gate_failures": 3})

    assert found["kind"] is AlertKind.GATES
    assert "gate_failures 3" in found["message"]
    assert "the largest served" in found["message"]


def below(kind: AlertKind = AlertKind.BELOW, message: str = "60 %") -> Plain:
    return alert(kind, message, *KEY)


def test_an_alert_is_reported_once_though_its_numbers_change() -> None:
    log = AlertLog(patience=1)

    assert log.update([below()]) == ["alert below (llama/default): 60 % (docs/runbook.md#below)"]
    assert log.update([below(message="61 %")]) == []
    assert log.update([]) == ["alert below (llama/default) is over"]
    assert log.update([]) == []
    assert log.update([below()]) == ["alert below (llama/default): 60 % (docs/runbook.md#below)"]


def test_a_failure_that_does_not_come_again_is_over_after_ten_minutes() -> None:
    now = [0.0]
    recent = RecentFailures(lambda: now[0])
    seen = {"journal_failures": 2, "records_dropped": 1}
    assert recent.of(seen) == seen

    now[0] = 300.0
    assert recent.of({**seen, "journal_failures": 1}) == {**seen, "journal_failures": 1}
    assert recent.of(seen) == seen  # one worker less, and a new failure
    now[0] = 899.0
    assert recent.of(seen) == seen
    now[0] = 900.0
    assert recent.of(seen) == {"records_dropped": 1}


def test_a_wavering_alert_is_one_alert() -> None:
    log = AlertLog(patience=3)
    log.update([below()])

    for _ in range(5):
        assert log.update([]) + log.update([]) + log.update([below()]) == []
    assert log.update([]) + log.update([]) == []
    assert log.update([]) == ["alert below (llama/default) is over"]


def test_alerts_are_distinguished() -> None:
    log = AlertLog(patience=1)
    other = alert(AlertKind.BELOW, "x", "llama", "gold")

    assert len(log.update([below(), other, below(AlertKind.JOURNAL)])) == 3
    assert log.update([below(), below(AlertKind.JOURNAL)]) == ["alert below (llama/gold) is over"]


def test_the_lines_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = AlertLog(patience=1)
    with caplog.at_level(logging.INFO, logger="litellm_messplus"):
        log.update([below(), below(AlertKind.THIN_EVIDENCE)])
        log.update([])

    levels = [record.levelno for record in caplog.records]
    assert levels == [logging.WARNING, logging.INFO, logging.INFO, logging.INFO]
    assert caplog.messages[0] == "alert below (llama/default): 60 % (docs/runbook.md#below)"
