"""A model that has changed is named, since when and by how much: in the status, by an alert, and in
the explanation of requests since."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from litellm_messplus.core import snapshot
from litellm_messplus.core.engine import Engine
from litellm_messplus.core.entries import Example, Settled
from litellm_messplus.core.verdict import Given
from litellm_messplus.figures.figure import Plain
from litellm_messplus.inspecting.explain import explain
from litellm_messplus.inspecting.logged import logged_in
from litellm_messplus.inspecting.render import sentences
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.status.alerts import AlertKind, AlertLog, change_alerts
from litellm_messplus.status.build import status_of
from litellm_messplus.status.figures import LiveLevel
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.model_changes import ModelChange, changes_of
from tests.support.builders import LARGE, SMALL, adaptive_of, build_engine, pair, request
from tests.support.statuses import KEY, status

NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=1)
CHANGE = ModelChange("llama", "gpt-4", NOON, NOON + timedelta(minutes=9), 0.9, 0.36, 12.0)


def changed(at: datetime) -> Engine:
    """An engine whose small model gave 300 good answers, and none from that time on."""
    engine = build_engine()
    predictor = adaptive_of(engine.state).predictor
    for number in range(340):
        is_after = number >= 300
        predictor.decided((at + timedelta(seconds=number - 300)).timestamp(), False)
        example = Example(f"r{number}", "pair-1", pair(1, 0), SMALL, False)
        value = float(not is_after and number % 10 != 0)
        given = (Given(LabelKind.FEEDBACK, "made", value),)
        engine.apply(Settled(number, "zoo", f"r{number}.0", SMALL, 9, 3.0, 9.0, example, given))
        if predictor.changes[predictor.index[SMALL]].change is not None:
            break
    return engine


def logged(path: Path, at: datetime) -> Path:
    """A log with a snapshot of that engine, and a request before the change, while it was not known
    yet, and after."""
    engine = changed(at)

    async def write() -> None:
        database = create_engine(f"sqlite+aiosqlite:///{path}")
        await migrate(database)
        estimates = {SMALL: 0.9, LARGE: 0.95}
        times = {"before": -60, "meanwhile": 2, "after": 60}
        await log.append(
            database,
            [
                replace(
                    request(name, estimated_satisfaction=estimates, estimated_cost=estimates),
                    created_at=at + timedelta(seconds=seconds),
                )
                for name, seconds in times.items()
            ],
        )
        state = snapshot.dump(engine.state)
        await snapshots.save(database, snapshots.Snapshot("zoo", 100, "f" * 64, state))
        await database.dispose()

    asyncio.run(write())
    return path


def test_the_change_is_that_of_the_labels() -> None:
    at = datetime.now(UTC)
    (found,) = changes_of("zoo", adaptive_of(changed(at).state).predictor)
    assert found.candidate == SMALL
    assert abs(found.since - at) <= timedelta(seconds=3)
    assert timedelta(seconds=3) < found.found - at < timedelta(seconds=15)
    assert found.before == pytest.approx(0.9, abs=0.02)
    assert found.after < 0.15
    assert found.labels < 15


def read(path: Path) -> Plain:
    return asyncio.run(status_of(str(path)))


def test_a_database_tells_it_for_a_day(tmp_path: Path) -> None:
    found = read(logged(tmp_path / "new.db", datetime.now(UTC) - timedelta(hours=1)))
    (alert,) = [each for each in found["alerts"] if each["kind"] == AlertKind.MODEL_CHANGED]
    (change,) = found["model_changes"]
    assert (alert["zoo"], change["candidate"]) == ("zoo", SMALL)
    old = read(logged(tmp_path / "old.db", datetime.now(UTC) - timedelta(hours=25)))
    assert old["model_changes"] == []
    assert AlertKind.MODEL_CHANGED not in [each["kind"] for each in old["alerts"]]


def test_requests_since_the_change_are_explained_with_it(tmp_path: Path) -> None:
    path = logged(tmp_path / "log.db", datetime.now(UTC) - timedelta(hours=1))

    def changes_of(request_id: str) -> list[str]:
        found = explain(asyncio.run(logged_in(str(path), request_id)))
        return [each for each in sentences(found) if each.startswith("A model had changed")]

    assert changes_of("before") == []
    assert "known by then: small seems" in changes_of("after")[0]
    assert "found at" in changes_of("meanwhile")[0]


def test_a_running_engine_tells_it_too_with_the_rate_before_and_since() -> None:
    found = status(live=LiveLevel(queue=0.0, changes=(CHANGE,)))
    assert [each["candidate"] for each in found["model_changes"]] == [CHANGE.candidate]
    (alert,) = [each for each in found["alerts"] if each["kind"] == AlertKind.MODEL_CHANGED]
    assert (alert["zoo"], alert["service_level"]) == (KEY[0], None)
    assert (
        alert["message"] == "gpt-4 seems to answer worse: 36 % satisfied since 12:00, 90 % before"
    )


def test_a_second_model_that_changes_on_the_same_day_has_a_line_of_its_own_in_the_log() -> None:
    log, other = AlertLog(patience=1), replace(CHANGE, candidate="gpt-3.5")
    (first,) = log.update(change_alerts([CHANGE]))
    (second,) = log.update(change_alerts([CHANGE, other]))
    assert (CHANGE.words in first, other.words in second) == (True, True)
    assert log.update(change_alerts([replace(CHANGE, after=0.4), other])) == []
    assert change_alerts([replace(CHANGE, after=0.95)]) == []  # better is no alarm
    (over,) = log.update(change_alerts([other]))
    assert over == f"alert model_changed ({CHANGE.zoo}, {CHANGE.candidate}) is over"


def test_a_change_found_on_another_day_is_shown_with_its_date() -> None:
    late = replace(CHANGE, found=NOON + timedelta(days=1))
    assert f"since {NOON:%Y-%m-%d} 12:00" in late.words
    assert late.is_new(late.found + timedelta(hours=23))
    assert not late.is_new(late.found + timedelta(hours=24))
