"""A part that cannot be closed leaves no other one open."""

from pathlib import Path

import pytest

from litellm_messplus.brain.web import Web
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.runtime.tasks import Closes, Periodic
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.serving.router import RequestRouter
from litellm_messplus.store.tables import requests
from tests.support.in_process import brain_of, written
from tests.support.journey import journey


@pytest.mark.parametrize(
    ("part", "count"), [(Periodic, 2), (Web, 1), (RequestRouter, 1), (Explorer, 1), (LabelDesk, 1)]
)
async def test_one_failing_close_loses_no_record(
    part: type[Closes], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_self: Closes) -> None:
        raise OSError("it will not")

    close = Periodic.close
    monkeypatch.setattr(part, "close", fails)
    async with journey(tmp_path) as proxy:
        await proxy.ask()

    assert len(await written(tmp_path, requests)) == 1
    assert proxy.counters == {"shutdown_failures": count}
    await close(proxy.plugin.parts.tasks)
    await close(brain_of(proxy.plugin.parts).tasks)
