"""A part that cannot be closed leaves no other one open."""

from pathlib import Path

import pytest

from litellm_messplus.brain.web import Web
from litellm_messplus.labels.source import LabelDesk
from litellm_messplus.runtime.tasks import Closes, Periodic
from litellm_messplus.serving.repeating import Explorer
from litellm_messplus.serving.router import RequestRouter
from litellm_messplus.store.tables import requests
from tests.support.in_process import written
from tests.support.journey import journey


@pytest.mark.parametrize("part", [Periodic, Web, RequestRouter, Explorer, LabelDesk])
async def test_one_failing_close_loses_no_record(
    part: type[Closes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_self: Closes) -> None:
        raise OSError("it will not")

    close = Periodic.close
    monkeypatch.setattr(part, "close", fails)
    async with journey(tmp_path) as proxy:
        await proxy.ask()

    assert len(await written(tmp_path, requests)) == 1
    assert proxy.counters == {"shutdown_failures": 1}
    await close(proxy.plugin.parts.tasks)
