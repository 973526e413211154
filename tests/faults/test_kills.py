"""SIGKILL under load, again and again on one database: nothing acknowledged is lost."""

import random
import time

import pytest

from tests.support.faults import Fault, Row, conclude
from tests.support.load import Load
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

LABELS_A_ROUND = 20
"""At least; with 50 rounds there are a thousand."""


def test_what_was_acknowledged_survives(proxy: WarmProxy, rows: list[Row], rounds: int) -> None:
    """Killed at a random moment, while the clients are in the middle of what they do."""
    moments = random.Random(0)
    proxy.start()
    with Load(proxy) as load:
        for _ in range(rounds):
            load.until_acknowledged(LABELS_A_ROUND)
            time.sleep(moments.uniform(0.0, 0.1))
            proxy.kill()
            proxy.start()
        load.until_acknowledged(LABELS_A_ROUND)
    proxy.stop()

    note = f"{rounds} kills, {load.tally.cut} connections cut by them"
    conclude(rows, Fault.KILLED, proxy, load, note, cuts=True)
    assert len(load.tally.acknowledged) >= LABELS_A_ROUND * rounds
