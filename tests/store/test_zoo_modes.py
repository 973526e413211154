"""Modes in the database: appended by compare-and-set, and bounded."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.brain.modes import LiveModes, ModeChanges, StaleRevisionError, adopt
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.tasks import Periodic
from litellm_messplus.settings.schema import ZooSettings
from litellm_messplus.store import log, zoo_modes
from litellm_messplus.store.zoo_modes import FILE, ModeRow
from litellm_messplus.switching.modes import Mode, ZooMode
from tests.support.builders import NOW, request, served_call
from tests.support.patience import until_it_holds

ROW = ModeRow("zoo", 1, "canary", 0.1, "large", "key", "because", NOW, "f" * 16)


def zoo(**given: object) -> dict[str, ZooSettings]:
    return {"zoo": ZooSettings.model_validate({"alpha": 0.8, **given})}


def changes(database: AsyncEngine, modes: LiveModes) -> ModeChanges:
    return ModeChanges(database, modes)


async def test_the_newest_row_of_each_zoo_is_read(database: AsyncEngine) -> None:
    watched = replace(ROW, revision=2, forecast={"requests": 5})
    for row in (ROW, watched, replace(ROW, zoo="other")):
        assert await zoo_modes.append(database, row)

    assert await zoo_modes.newest(database) == {"zoo": watched, "other": replace(ROW, zoo="other")}
    assert [row.revision for row in await zoo_modes.history(database, "zoo", 10)] == [2, 1]


async def test_of_two_who_write_one_revision_one_is_refused(database: AsyncEngine) -> None:
    both = await asyncio.gather(
        *(zoo_modes.append(database, replace(ROW, by=by)) for by in ("one", "two"))
    )

    assert sorted(both) == [False, True]


async def test_a_bounded_number_of_changes_is_kept(
    database: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zoo_modes, "KEPT", 3)
    for revision in range(1, 7):
        await zoo_modes.append(database, replace(ROW, revision=revision))

    assert [row.revision for row in await zoo_modes.history(database, "zoo", 10)] == [6, 5, 4]


async def test_a_zoo_that_was_always_on_has_no_row(database: AsyncEngine) -> None:
    modes = LiveModes(zoo())
    await adopt(database, modes)

    assert await zoo_modes.newest(database) == {}
    assert modes.now == {"zoo": ZooMode()}


async def test_the_files_value_holds_until_somebody_changes_it(database: AsyncEngine) -> None:
    modes = LiveModes(zoo(mode="watch", before="large"))
    await adopt(database, modes)
    assert modes.rows["zoo"].by == FILE
    await changes(database, modes).change(
        "zoo", ZooMode(Mode.CANARY, 0.2, "large", 1), "key", "it looks well"
    )

    again = LiveModes(zoo(mode="watch", before="large"))
    await adopt(database, again)
    assert again.now["zoo"] == ZooMode(Mode.CANARY, 0.2, "large", 2)


async def test_a_changed_value_of_the_file_goes_before_the_database(database: AsyncEngine) -> None:
    await adopt(database, LiveModes(zoo(mode="watch", before="large")))
    edited = LiveModes(zoo(mode="canary", before="large", share=0.3))
    await adopt(database, edited)

    assert edited.now["zoo"] == ZooMode(Mode.CANARY, 0.3, "large", 2)
    assert edited.rows["zoo"].reason == "the configuration has changed"


async def test_a_changed_value_keeps_what_happened_before(database: AsyncEngine) -> None:
    await adopt(database, LiveModes(zoo(mode="canary", before="large", share=0.3)))
    soon = datetime.now(UTC) + timedelta(seconds=1)
    await log.append(database, [request("r1", created_at=soon), served_call("r1")])
    edited = LiveModes(zoo(mode="watch", before="large"))
    await adopt(database, edited)

    happened = edited.rows["zoo"].happened
    assert happened is not None
    assert happened["requests"] == 1
    assert edited.rows["zoo"].forecast is None


async def test_another_worker_sees_a_change(database: AsyncEngine) -> None:
    settings = zoo(mode="watch", before="large")
    one, two = LiveModes(settings), LiveModes(settings)
    await adopt(database, one)
    await adopt(database, two)
    following = Periodic(Counters())
    changes(database, two).start(following)
    try:
        await changes(database, one).change("zoo", ZooMode(Mode.ON, 0.1, "large", 1), "key", "go")
        await until_it_holds(lambda: two.now["zoo"].mode is Mode.ON)
    finally:
        await following.close()


async def test_a_stale_revision_changes_nothing(database: AsyncEngine) -> None:
    modes = LiveModes(zoo(mode="watch", before="large"))
    await adopt(database, modes)
    with pytest.raises(StaleRevisionError, match="revision 0 of zoo zoo"):
        await changes(database, modes).change("zoo", ZooMode(Mode.ON, revision=0), "key", "go")

    assert modes.now["zoo"].mode is Mode.WATCH


async def test_a_silent_database_leaves_the_last_mode(database: AsyncEngine) -> None:
    modes = LiveModes(zoo(mode="canary", before="large", share=0.2))
    await adopt(database, modes)
    counters = Counters()

    class Silent(ModeChanges):
        async def look(self) -> None:
            raise OSError("away")

    following = Periodic(counters)
    Silent(database, modes).start(following)
    await until_it_holds(lambda: bool(counters.as_dict()))
    await following.close()

    assert modes.now["zoo"] == ZooMode(Mode.CANARY, 0.2, "large", 1)
    assert counters.as_dict() == {"modes_unread": 1}
