"""Every figure of the status, against the same history in plain Python."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from litellm_messplus.figures.interval import Standing, wilson
from litellm_messplus.prediction.head import Label
from litellm_messplus.records import LabelRecord, RequestRecord, served_call_id
from litellm_messplus.status.report import LevelStatus, Source, Status, WindowStatus
from litellm_messplus.vocabulary import PRECEDENCE, CallRole
from tests.status.conftest import WINDOW, read
from tests.support.history import History, migrated
from tests.support.seeded import ALPHA, LARGEST, SMALL, ZOO, Case, add

SPANS = [(name, span) for name in ALPHA for span in ("overall", "last")]
spans = pytest.mark.parametrize(("name", "span"), SPANS)


def level(status: Status, name: str) -> LevelStatus:
    return next(each for each in status.levels if each.service_level == name)


def window(status: Status, name: str, span: str) -> WindowStatus:
    found = getattr(level(status, name), span)
    assert isinstance(found, WindowStatus)
    return found


def requests(recorded: History, name: str, span: str) -> list[RequestRecord]:
    found = [each for each in recorded.requests if each.service_level == name]
    return found[-WINDOW:] if span == "last" else found


def plain(status: Status) -> Any:
    return status.as_dict()


def of(recorded: History, rows: Sequence[RequestRecord]) -> History:
    """The part of a history that belongs to some requests."""
    ids = {row.request_id for row in rows}
    return History(
        list(rows),
        [call for call in recorded.calls if call.request_id in ids],
        [label for label in recorded.labels if label.request_id in ids],
        [grading for grading in recorded.gradings if grading.request_id in ids],
    )


def weighted(labels: Sequence[Label]) -> tuple[float, float]:
    """The mean of verdicts by their weights, and how many equal ones say as much."""
    weight = sum(label.weight for label in labels)
    mean = sum(label.weight * label.value for label in labels) / weight
    return mean, weight**2 / sum(label.weight**2 for label in labels)


def write(path: Path, *cases: Case) -> Path:
    history = History()
    for case in cases:
        add(history, case)
    migrated(path, history)
    return path


def test_every_promise_is_there_and_the_window_is_said(status: Status) -> None:
    assert [(each.zoo, each.service_level, each.alpha) for each in status.levels] == [
        (ZOO, name, alpha) for name, alpha in ALPHA.items()
    ]
    assert status.window == WINDOW


@spans
def test_satisfaction(status: Status, recorded: History, name: str, span: str) -> None:
    found = window(status, name, span).satisfaction
    rows = requests(recorded, name, span)
    part = of(recorded, rows)
    verdicts = part.verdicts(name)
    rate, equal = weighted(verdicts)
    interval = wilson(rate, equal)

    assert interval is not None
    assert (found.requests, found.judged) == (len(rows), len(verdicts))
    assert found.judged_share == pytest.approx(len(verdicts) / len(rows))
    assert (found.rate, found.effective) == pytest.approx((rate, equal))
    assert (found.effective < found.judged) == (name == "default")  # weak ones are among them
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.promised == ALPHA[name]


@spans
def test_each_source(status: Status, recorded: History, name: str, span: str) -> None:
    found = window(status, name, span).labels
    part = of(recorded, requests(recorded, name, span))
    counting = Counter(
        (label.kind, label.value, label.weight)
        for row in part.requests
        if (label := deciding(part, row)) is not None
    )
    served = {served_call_id(row.request_id) for row in part.requests}

    assert [source.source for source in found.sources] == (
        ["feedback", "judge", "implicit"] if name == "default" else ["feedback"]
    )
    for source in found.sources:
        said = list(part.said(source.source).values())
        interval = wilson(fmean(said), len(said))
        assert interval is not None
        assert source.labelled == len(said)
        assert source.rate == pytest.approx(fmean(said))
        assert (source.low, source.high) == pytest.approx((interval.low, interval.high))
        assert source.counting == sum(n for key, n in counting.items() if key[0] == source.kind)
    labelled = {label.request_id for label in part.labels if label.call_id in served}
    assert found.labelled == len(labelled)
    assert found.labelled_share == pytest.approx(len(labelled) / len(part.requests))


def deciding(part: History, request: RequestRecord) -> LabelRecord | None:
    """The newest label of the strongest source on the served call."""
    call_id = served_call_id(request.request_id)
    given = [label for label in part.labels if label.call_id == call_id]
    return min(given, key=lambda label: PRECEDENCE.index(label.kind), default=None)


@spans
def test_what_comes_before_the_call(
    status: Status, recorded: History, name: str, span: str
) -> None:
    found = window(status, name, span).overhead
    part = of(recorded, requests(recorded, name, span))
    ended = [row for row in part.requests if part.calls_of(row)]
    predicting = fmean(row.encode_seconds or 0.0 for row in ended)
    deciding = fmean(row.decision_seconds - (row.encode_seconds or 0.0) for row in ended)
    call = fmean(part.served(row).seconds or 0.0 for row in ended)

    assert found is not None
    assert (found.requests, found.late) == (len(ended), 0)
    assert found.predicting_seconds == pytest.approx(predicting)
    assert found.deciding_seconds == pytest.approx(deciding)
    assert found.call_seconds == pytest.approx(call)
    assert found.predicting_share == pytest.approx(predicting / (predicting + deciding + call))
    assert found.predicting_share + found.deciding_share + found.call_share == pytest.approx(1.0)
    measured = [row.encode_joules for row in ended if row.encode_joules is not None]
    assert bool(measured) == (name == "default")
    assert found.predicting_joules == (pytest.approx(fmean(measured)) if measured else None)


@spans
def test_cost(status: Status, recorded: History, name: str, span: str) -> None:
    found = window(status, name, span).cost
    part = of(recorded, requests(recorded, name, span))
    priced = [
        row for row in part.requests if part.calls_of(row) and part.served(row).cost is not None
    ]

    assert found.total == pytest.approx(sum(part.cost(row) for row in part.requests))
    assert found.per_request == pytest.approx(fmean(part.cost(row) for row in priced))
    assert found.calls_without_cost == sum(call.cost is None for call in part.calls)


@spans
def test_exploration(status: Status, recorded: History, name: str, span: str) -> None:
    found = window(status, name, span).exploration
    part = of(recorded, requests(recorded, name, span))
    explored = sum(row.is_exploration for row in part.requests)
    cost = sum(call.cost or 0.0 for call in part.calls if call.role is CallRole.EXPLORATION)

    assert found.requests == explored
    assert found.share == pytest.approx(explored / len(part.requests))
    assert found.cost == pytest.approx(cost)
    assert found.cost_share == pytest.approx(cost / sum(call.cost or 0.0 for call in part.calls))


@spans
def test_savings(status: Status, recorded: History, name: str, span: str) -> None:
    found = window(status, name, span).savings
    part = of(recorded, requests(recorded, name, span))
    compared = [
        row for row in part.requests if part.calls_of(row) and part.served(row).cost is not None
    ]
    largest = [
        (part.served(row).cost or 0.0)
        if part.served(row).candidate == row.largest
        else row.estimated_cost[row.largest]
        for row in compared
    ]
    paid = sum(part.served(row).cost or 0.0 for row in compared) + sum(
        call.cost or 0.0 for call in part.calls if call.role is CallRole.EXPLORATION
    )
    saved = sum(largest) - paid - sum(each.cost or 0.0 for each in part.gradings)

    assert found is not None
    assert found.requests == len(compared)
    assert found.cost_largest == pytest.approx(sum(largest))
    assert found.saved == pytest.approx(saved, abs=1e-9)
    assert found.saved_share == pytest.approx(saved / sum(largest), abs=1e-9)


@pytest.mark.parametrize("name", ALPHA)
def test_queue_and_price_are_of_the_newest_request(
    status: Status, recorded: History, name: str
) -> None:
    found, newest = level(status, name), requests(recorded, name, "last")[-1]

    assert found.source is Source.NEWEST_REQUEST
    assert (found.queue, found.price) == (newest.queue, newest.price)
    assert found.largest == newest.largest == LARGEST


def test_a_promise_that_changed_is_judged_by_what_was_promised(tmp_path: Path) -> None:
    cases = [Case(SMALL, (0.0,), alpha=0.0)] * 100 + [Case(SMALL, (1.0,), alpha=1.0)] * 100
    found = read(write(tmp_path / "a.db", *cases, Case(alpha=0.8)), 50).levels[0]

    assert found.alpha == 0.8
    assert found.overall.satisfaction.promised == pytest.approx(0.5)
    assert found.overall.satisfaction.verdict is Standing.TOO_EARLY
    assert found.last.satisfaction.promised == 1.0


@pytest.mark.parametrize(
    ("satisfied", "answered", "expected"),
    [(300, 300, Standing.ON_TRACK), (90, 300, Standing.BELOW), (180, 300, Standing.TOO_EARLY)],
)
def test_the_verdict(tmp_path: Path, satisfied: int, answered: int, expected: Standing) -> None:
    cases = [Case(SMALL, (float(number < satisfied),)) for number in range(answered)]
    found = read(write(tmp_path / "a.db", *cases), 500).levels[0]  # promised: 0.6

    assert found.overall.satisfaction.verdict is found.last.satisfaction.verdict is expected


def test_thin_evidence_is_said_plainly(tmp_path: Path) -> None:
    cases = [Case(SMALL, (1.0,) if number < 37 else ()) for number in range(500)]
    found = read(write(tmp_path / "a.db", *cases), 500).levels[0].overall.satisfaction

    assert found.is_thin
    assert found.evidence.startswith("not enough evidence: 37 of 500 requests with a verdict")


def test_unknown_costs_are_not_zero(tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.db", *[Case(SMALL, cost=None)] * 3)).levels[0]

    assert (found.overall.cost.total, found.overall.cost.per_request) == (None, None)
    assert found.overall.cost.calls_without_cost == 3
    assert (found.overall.savings, found.overall.satisfaction.rate) == (None, None)


def test_an_empty_database_has_no_promises(tmp_path: Path) -> None:
    found = read(write(tmp_path / "a.db"), 500)

    assert plain(found) == {
        "window": 500,
        "levels": [],
        "alerts": [],
        "calibration": [],
        "judges": [],
        "keys": [],
        "label_costs": [],
        "candidates": [],
        "switches": [],
        "conversations": [],
        "incidents": [],
    }


def test_json_and_back(status: Status) -> None:
    assert Status.of(plain(status)) == status


def test_what_is_no_status_is_refused() -> None:
    with pytest.raises(ValueError, match="levels"):
        Status.of({"window": 3})
