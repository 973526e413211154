"""The status shows how far a zoo is switched on, and what routing would give."""

from dataclasses import replace

from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.runtime.vocabulary import WARM_UP, CallStatus
from litellm_messplus.status.build import read_status
from litellm_messplus.status.render import summary
from litellm_messplus.status.switches import switch_lines
from litellm_messplus.store import log, zoo_modes
from litellm_messplus.store.zoo_modes import WAY_BACK, ModeRow
from litellm_messplus.switching.modes import Arm, Mode
from tests.support.builders import LARGE, NOW, label, request, served_call

ROW = ModeRow("zoo", 1, "watch", 0.1, LARGE, "file", "as configured", NOW, "f" * 16)


def watched(count: int) -> list[Record]:
    """The choice serves anyway; every tenth answer does not satisfy."""
    found: list[Record] = []
    for number in range(1, count + 1):
        name = f"w{number}"
        first = request(
            name,
            service_level="default:before",
            expected_t=number,
            arm=Arm.BEFORE,
            chosen=LARGE,
            would_choose=LARGE,
            would_cost=5.0,
            is_exploration=False,
            conversation_draw=number / (count + 1),
        )
        found += [first, served_call(name), label(name, float(number % 10 > 0))]
    return found


async def test_a_watched_zoo_has_its_forecast_and_no_promise(database: AsyncEngine) -> None:
    await zoo_modes.append(database, ROW)
    await log.append(database, [request("r1"), served_call("r1"), *watched(WARM_UP + 100)])
    found = await read_status(database)

    assert [(level["zoo"], level["service_level"]) for level in found["levels"]] == [
        ("zoo", "default")
    ]
    assert found["levels"][0]["overall"]["satisfaction"]["requests"] == 1
    (switch,) = found["switches"]
    assert (switch["mode"], switch["before"], switch["is_returned"]) == (Mode.WATCH, LARGE, False)
    forecast = switch["forecast"]
    assert forecast["requests"] == 100
    assert forecast["satisfaction"]["estimate"] == 0.9
    assert forecast["cost"]["estimate"] == 5.0
    lines = list(summary(found))
    assert lines[-1].startswith("zoo: watch, before large; forecast of routing: 90.0 % (")
    assert lines[-1].endswith(
        "satisfied, 5 (5 to 5) a request, would have saved 0.0 % (0.0 to 0.0 %) of always "
        "calling the largest, before labels, from 100 requests, 100 judged"
    )


async def test_a_zoo_that_is_on_has_no_line_of_its_own(database: AsyncEngine) -> None:
    await zoo_modes.append(database, replace(ROW, mode="on"))
    await log.append(database, [request("r1"), served_call("r1")])
    found = await read_status(database)

    assert found["switches"][0]["forecast"] is None
    assert list(switch_lines(found["switches"])) == []


async def test_a_forecast_taken_back_stands_next_to_what_happened(database: AsyncEngine) -> None:
    expected = {
        "requests": 900,
        "called": 400,
        "satisfaction": {"estimate": 0.81, "low": 0.78, "high": 0.84},
        "cost": {"estimate": 0.2, "low": 0.1, "high": 0.3},
        "would_have_saved": None,
    }
    came = {"requests": 120, "answered": 90, "satisfaction": 0.6, "cost": 0.25}
    await zoo_modes.append(database, ROW)
    await zoo_modes.append(database, replace(ROW, revision=2, mode="on", forecast=expected))
    await log.append(database, [request("r1", created_at=NOW), served_call("r1")])
    on = (await read_status(database))["switches"][0]["switched"]
    await zoo_modes.append(database, replace(ROW, revision=3, by=WAY_BACK, happened=came))
    found = await read_status(database)

    assert (on["mode"], on["until"], on["happened"]["requests"]) == (Mode.ON, None, 1)
    switched = found["switches"][0]["switched"]
    assert switched["forecast"] == expected
    assert switched["happened"] == came
    assert list(switch_lines(found["switches"]))[1] == (
        "zoo: on was forecast: 81.0 % (78.0 to 84.0 %) satisfied, 0.2 (0.1 to 0.3) a request, "
        "from 900 requests, 400 judged; happened: 60.0 % satisfied, 0.25 a request, 120 requests"
    )


async def test_served_as_before_stands_by_the_forecast(database: AsyncEngine) -> None:
    await zoo_modes.append(database, ROW)
    await log.append(
        database,
        [
            *watched(WARM_UP + 100),
            request("failed", service_level="default:before", expected_t=900, arm=Arm.BEFORE),
            served_call("failed", status=CallStatus.FAILURE, cost=None),
        ],
    )
    found = await read_status(database)

    (level,) = found["levels"]
    assert level["overall"]["satisfaction"]["requests"] == 0
    now = level["as_before"]
    assert (now["requests"], now["judged"], now["rate"]) == (WARM_UP + 101, WARM_UP + 100, 0.9)
    assert now["answered_share"] == (WARM_UP + 100) / (WARM_UP + 101)
    assert now["cost_per_request"] == 5.0
    before, forecast = list(summary(found))[-2:]
    assert before.startswith("zoo, default, served as before, the newest 351 requests: ")
    assert "99.7 % answered, 90.0 % (86.4 to 92.7 %) of 350 judged satisfied, 5 a req" in before
    assert "forecast of routing: 90.0 %" in forecast
