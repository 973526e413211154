"""The status says how far a zoo is switched on, and what routing would come to."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.records import Record
from litellm_messplus.status.build import read_status
from litellm_messplus.status.render import summary
from litellm_messplus.status.report import Status
from litellm_messplus.status.switches import switch_lines
from litellm_messplus.store import log, zoo_modes
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.zoo_modes import ModeRow
from litellm_messplus.switching.modes import WARM_UP, Arm, Mode
from tests.support.builders import LARGE, NOW, label, request, served_call

ROW = ModeRow("zoo", 1, "watch", 0.1, LARGE, "file", "as configured", NOW, "f" * 16)


def watched(count: int) -> list[Record]:
    """The choice serves anyway; every tenth answer does not satisfy."""
    found: list[Record] = []
    for number in range(1, count + 1):
        name = f"w{number}"
        asked = request(
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
        found += [asked, served_call(name), label(name, float(number % 10 > 0))]
    return found


@pytest.fixture
async def log_database(database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database_url)
    await migrate(engine)
    yield engine
    await engine.dispose()


async def test_a_watched_zoo_has_its_forecast_and_no_promise(log_database: AsyncEngine) -> None:
    await zoo_modes.append(log_database, ROW)
    await log.append(log_database, [request("r1"), served_call("r1"), *watched(WARM_UP + 100)])
    found = await read_status(log_database)

    assert [(level.zoo, level.service_level) for level in found.levels] == [("zoo", "default")]
    assert found.levels[0].overall.satisfaction.requests == 1
    (switch,) = found.switches
    assert (switch.mode, switch.before, switch.is_returned) == (Mode.WATCH, LARGE, False)
    assert switch.forecast is not None
    assert switch.forecast.requests == 100
    assert switch.forecast.satisfaction is not None
    assert switch.forecast.satisfaction.estimate == 0.9
    assert switch.forecast.cost is not None
    assert switch.forecast.cost.estimate == 5.0
    assert Status.of(found.as_dict()) == found
    lines = [line.plain for line in summary(found)]
    assert lines[-1].startswith("zoo: watch, before large; routing is forecast at 90.0 % (")
    assert lines[-1].endswith("satisfied, 5 a request (5 to 5)")


async def test_a_zoo_that_is_on_has_no_line_of_its_own(log_database: AsyncEngine) -> None:
    await zoo_modes.append(log_database, replace(ROW, mode="on"))
    await log.append(log_database, [request("r1"), served_call("r1")])
    found = await read_status(log_database)

    assert found.switches[0].forecast is None
    assert list(switch_lines(found.switches)) == []
