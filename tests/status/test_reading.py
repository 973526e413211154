"""What the status asks of the newest requests: traffic now, the outage that is reported while it
lasts, and the largest candidate."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain import monitoring
from litellm_messplus.records import RequestRecord
from litellm_messplus.runtime.vocabulary import CallStatus, Failure
from litellm_messplus.status.alerts import AlertKind, failing_alerts
from litellm_messplus.status.build import read_status
from litellm_messplus.status.reading import MINUTES, WELL, Recent, newest, recent_requests
from litellm_messplus.store import log
from tests.support.builders import LARGE, MEDIUM, SMALL, exploration_call, request, served_call

UP, NONE, LATE = Failure.UPSTREAM, Failure.NO_DEPLOYMENT, Failure.DEADLINE
GONE, REFUSED = Failure.CLIENT_GONE, Failure.REFUSED


@pytest.mark.parametrize(
    ("ended", "failures", "is_failing"),
    [
        (120, {UP: 70, NONE: 40}, True),
        (20, {LATE: 2}, True),
        (20, {UP: 1}, False),
        (19, {UP: 19}, False),
        (100, {UP: 5}, False),
        (100, {UP: 3, LATE: 3}, True),
        (100, {GONE: 50, REFUSED: 50}, False),
    ],
)
def test_more_than_5_percent_of_at_least_20_are_an_alert(
    ended: int, failures: dict[Failure, int], is_failing: bool
) -> None:
    alerts = list(failing_alerts({"zoo": Recent(ended, Counter(failures))}))

    assert [each["kind"] for each in alerts] == ([AlertKind.FAILING] if is_failing else [])


def test_it_is_looked_for_often_enough_to_fire_within_a_minute() -> None:
    assert monitoring.LOOK_SECONDS <= 30.0


async def messages(
    engine: AsyncEngine, failures: Sequence[Failure | None], ago: int, candidate: str | None = None
) -> list[str]:
    """What the alerts say after these requests, which ended so many minutes ago."""
    at = datetime.now(UTC) - timedelta(minutes=ago)
    for number, failure in enumerate(failures):
        name = f"r{ago}-{number}"
        status = CallStatus.SUCCESS if failure is None else CallStatus.FAILURE
        call = served_call(name, ended_at=at, status=status, failure=failure)
        unseen = exploration_call(name, ended_at=at, status=CallStatus.FAILURE)
        await log.append(engine, [request(name, created_at=at), call, unseen])
    found = await read_status(engine)
    failing = [each for each in found["alerts"] if each["kind"] == AlertKind.FAILING]
    return [each["message"] for each in failing if each["candidate"] == candidate]


async def test_an_endpoint_that_fails_all_is_named(database: AsyncEngine) -> None:
    trials: tuple[tuple[list[Failure | None], int], ...]
    trials = (([UP] * 2, 0), ([REFUSED, UP], 1), ([None], 0), ([UP] * 2, 0))
    for ago, (failures, alerts) in enumerate(trials, start=1):
        said = await messages(database, failures, MINUTES - ago, LARGE)
        assert len(said) == alerts
        assert not said or "large fails: its endpoint deployment-1 failed the last 3" in said[0]


async def test_it_says_how_many_failed_and_by_whom_until_it_is_over(database: AsyncEngine) -> None:
    """However many failed: once so many in a row are answered, it is over."""
    assert await messages(database, [UP] * 30, ago=MINUTES + 1) == []
    assert await messages(database, [*[None] * 10, *[UP] * 12, *[NONE] * 3], ago=1) == [
        "15 of the 25 requests of the last 5 minutes failed (60.0 %): upstream 12, no deployment 3"
    ]
    assert await messages(database, [None] * (WELL - 1), ago=0) != []
    assert await messages(database, [REFUSED], ago=-1) == []


@pytest.mark.parametrize(
    ("seconds", "most", "per_hour"),
    [
        (8 * 60, 5_000, 900.0),  # 15 a minute, since 8 minutes
        (2 * 60, 5_000, 360.0),  # 30 within the 5 minutes
        (8 * 60, 25, 900.0),  # only the newest 100 seconds are read
        (0, 5_000, 0.0),
    ],
)
async def test_traffic_now_is_the_rate_of_the_last_5_minutes(
    database: AsyncEngine, seconds: int, most: int, per_hour: float
) -> None:
    now = datetime(2026, 3, 1, 0, 8, tzinfo=UTC)
    for number in range(seconds // 4):
        name = f"r{number}"
        at = now - timedelta(seconds=seconds - 4 * (number + 1) + 0.001)
        level = "default:before" if number % 3 == 0 else "default"
        await log.append(
            database,
            [request(name, created_at=at, service_level=level), served_call(name, ended_at=at)],
        )
    async with database.connect() as connection:
        found = await recent_requests(connection, now, most)

    assert sum(each.per_hour for each in found.values()) == pytest.approx(per_hour, rel=0.05)
    if found:
        before = found["zoo", "default:before"].per_hour
        assert before == pytest.approx(per_hour / 3, rel=0.1)


@pytest.mark.parametrize(
    ("before", "largest"),
    [([request("free")], LARGE), ([], MEDIUM)],
    ids=["of the newest that all could take", "of the newest"],
)
async def test_the_largest_is_that_of_the_newest_request_that_all_could_take_if_there_is_one(
    database: AsyncEngine, before: list[RequestRecord], largest: str
) -> None:
    gated = request(
        "gated",
        expected_t=2,
        queue=3.0,
        eligible=(SMALL, MEDIUM),
        largest=MEDIUM,
        estimated_cost={SMALL: 1.0, MEDIUM: 2.0},
    )
    await log.append(database, [*before, gated])
    async with database.connect() as connection:
        (found,) = (await newest(connection)).values()

    assert (found.largest, found.queue) == (largest, 3.0)
