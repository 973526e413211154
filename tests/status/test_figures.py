"""The labels of each source against the same history in plain Python; a promise of few requests."""

from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest

from litellm_messplus.figures.figure import Plain
from litellm_messplus.figures.interval import Standing, wilson
from litellm_messplus.records import LabelRecord, RequestRecord, served_call_id
from litellm_messplus.runtime.vocabulary import PRECEDENCE
from litellm_messplus.status.figures import Source
from tests.status.conftest import WINDOW, read
from tests.support.history import History, migrated
from tests.support.seeded import ALPHA, LARGEST, SMALL, ZOO, Case, add


def level(status: Plain, name: str) -> Plain:
    return next(each for each in status["levels"] if each["service_level"] == name)


@pytest.fixture(params=[(name, span) for name in ALPHA for span in ("overall", "last")], ids=str)
def both(
    request: pytest.FixtureRequest, status: Plain, recorded: History
) -> tuple[str, Plain, History]:
    """A service level, its status over a window, and the part of the history that this is of."""
    name, span = request.param
    rows = [each for each in recorded.requests if each.service_level == name]
    if span == "last":
        rows = rows[-WINDOW:]
    ids = {row.request_id for row in rows}
    part = History(
        rows,
        [call for call in recorded.calls if call.request_id in ids],
        [label for label in recorded.labels if label.request_id in ids],
        [grading for grading in recorded.gradings if grading.request_id in ids],
    )
    return name, level(status, name)[span], part


def test_each_source(both: tuple[str, Plain, History]) -> None:
    name, window, part = both
    found = window["labels"]
    counting = Counter(
        label.kind for row in part.requests if (label := deciding(part, row)) is not None
    )
    served = {served_call_id(row.request_id) for row in part.requests}

    assert [source["source"] for source in found["sources"]] == (
        ["feedback", "check:own", "judge"] if name == "default" else ["feedback"]
    )
    for source in found["sources"]:
        labels = list(part.said(source["source"]).values())
        interval = wilson(fmean(labels), len(labels))
        assert interval is not None
        assert source["labelled"] == len(labels)
        assert (source["rate"], source["low"], source["high"]) == pytest.approx(
            (fmean(labels), interval.low, interval.high)
        )
        assert source["counting"] == counting[source["kind"]]
    labelled = {label.request_id for label in part.labels if label.call_id in served}
    assert found["labelled"] == len(labelled)
    assert found["labelled_share"] == pytest.approx(len(labelled) / len(part.requests))


def deciding(part: History, request: RequestRecord) -> LabelRecord | None:
    """The newest label of the strongest source on the served call."""
    call_id = served_call_id(request.request_id)
    given = [label for label in part.labels if label.call_id == call_id]
    return min(given, key=lambda label: PRECEDENCE.index(label.kind), default=None)


def test_every_promise_is_there_and_the_window_stated(status: Plain, recorded: History) -> None:
    assert [(each["zoo"], each["service_level"], each["alpha"]) for each in status["levels"]] == [
        (ZOO, name, alpha) for name, alpha in ALPHA.items()
    ]
    assert status["window"] == WINDOW
    for found in status["levels"]:
        of_level = [r for r in recorded.requests if r.service_level == found["service_level"]]
        newest = of_level[-1]
        assert found["source"] == Source.NEWEST_REQUEST
        assert (found["queue"], found["price"]) == (newest.queue, newest.price)
        assert found["largest"] == newest.largest == LARGEST


def promise(path: Path, *cases: Case, window: int = 500) -> Plain:
    """The status of the only promise of such a log."""
    history = History()
    for case in cases:
        add(history, case)
    migrated(path / "a.db", history)
    found: Plain = read(path / "a.db", window)["levels"][0]
    return found


def test_a_promise_that_changed_is_judged_by_what_was_promised(tmp_path: Path) -> None:
    cases = [Case(SMALL, (0.0,), alpha=0.0)] * 100 + [Case(SMALL, (1.0,), alpha=1.0)] * 100
    found = promise(tmp_path, *cases, Case(alpha=0.8), window=50)

    assert found["alpha"] == 0.8
    assert found["overall"]["satisfaction"]["promised"] == pytest.approx(0.5)
    assert found["overall"]["satisfaction"]["verdict"] == Standing.TOO_EARLY
    assert found["last"]["satisfaction"]["promised"] == 1.0


@pytest.mark.parametrize(
    ("satisfied", "expected"),
    [(300, Standing.ON_TRACK), (90, Standing.BELOW), (180, Standing.TOO_EARLY)],
)
def test_the_verdict(tmp_path: Path, satisfied: int, expected: Standing) -> None:
    cases = [Case(SMALL, (float(number < satisfied),)) for number in range(300)]
    found = promise(tmp_path, *cases)  # promised: 0.6

    assert {found[span]["satisfaction"]["verdict"] for span in ("overall", "last")} == {expected}


def test_thin_evidence_is_stated_plainly(tmp_path: Path) -> None:
    cases = [Case(SMALL, (1.0,) if number < 37 else ()) for number in range(500)]
    found = promise(tmp_path, *cases)["overall"]["satisfaction"]

    assert found["is_thin"]
    assert found["evidence"].startswith("not enough evidence: 37 of 500 requests with a verdict")


def test_unknown_costs_are_not_zero(tmp_path: Path) -> None:
    found = promise(tmp_path, *[Case(SMALL, cost=None)] * 3)["overall"]

    assert (found["cost"]["total"], found["cost"]["per_request"]) == (None, None)
    assert found["cost"]["calls_without_cost"] == 3
    assert (found["savings"], found["satisfaction"]["rate"]) == (None, None)


def test_the_cost_of_a_request_is_that_of_those_whose_served_call_has_one(tmp_path: Path) -> None:
    unknown = Case(SMALL, cost=None, explored={LARGEST: 1.0})
    found = promise(tmp_path, unknown, Case(SMALL, cost=0.25))["overall"]["cost"]

    assert found["total"] == pytest.approx(0.35)
    assert found["per_request"] == 0.25


def test_an_empty_database_has_no_promises(tmp_path: Path) -> None:
    migrated(tmp_path / "a.db", History())
    found = read(tmp_path / "a.db", 500)

    assert found.pop("window") == 500
    assert len(found) == 12
    assert not any(found.values())
