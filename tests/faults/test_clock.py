"""The clock jumps a day back and ten days on while the proxy serves."""

import pytest

from tests.support.clock import OF_THE_BRAIN, OF_THE_WORKER, jump
from tests.support.faults import Fault, Row, conclude
from tests.support.load import Load
from tests.support.proxy import Config, in_the_brain
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

SOME = 40
DAY = 86_400
JUMPS = (0, -DAY, 10 * DAY, 0)


def test_a_clock_that_jumps(config: Config, proxy: WarmProxy, rows: list[Row]) -> None:
    config["litellm_settings"]["callbacks"] = ["jumping.instance"]
    (proxy.folder / "jumping.py").write_text(OF_THE_WORKER)
    in_the_brain(proxy.folder, OF_THE_BRAIN)
    jump(proxy.folder, JUMPS[0])
    proxy.start()
    with Load(proxy) as load:
        for seconds in JUMPS:
            jump(proxy.folder, seconds)
            load.until_acknowledged(SOME)
    proxy.stop()

    note = "a day back and ten days on, simulated"
    conclude(rows, Fault.CLOCK, proxy, load, note)
    (found,) = proxy.rows("SELECT COUNT(DISTINCT date(created_at)) AS days FROM labels")
    assert found["days"] == len(set(JUMPS))
