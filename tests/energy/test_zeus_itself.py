"""With the real package of the extra `energy`: no sensor on this host, and a daemon elsewhere."""

import gc
from collections.abc import Callable, Iterator

import pytest

from litellm_messplus.energy.meter import NotMeasuredError
from litellm_messplus.energy.zeus import open_meter
from tests.support.ports import free_port
from tests.support.simulated_zeusd import SimulatedZeusd

zeus_device = pytest.importorskip("zeus.device", reason="the extra `energy` is not installed")

pytestmark = [  # of Zeus's client
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Start = Callable[..., SimulatedZeusd]


@pytest.fixture
def start() -> Iterator[Start]:
    daemons: list[SimulatedZeusd] = []

    def started(**changed: object) -> SimulatedZeusd:
        daemons.append(SimulatedZeusd(**changed))  # type: ignore[arg-type]
        daemons[-1].start()
        return daemons[-1]

    yield started
    for daemon in daemons:
        daemon.stop()
    gc.collect()  # Zeus's client cannot be closed, and complains when it is collected


def has_gpu() -> bool:
    try:
        zeus_device.get_gpus()
    except Exception:
        return False
    return True


@pytest.mark.skipif(has_gpu(), reason="this host has a GPU")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "run `messplus profile` on the host of the GPUs, or start zeusd"),
        ({"gpus": [3]}, "--gpu: given 3: .*run `messplus profile` on the host of the GPUs"),
    ],
)
def test_a_host_without_a_sensor_stops_and_says_what_to_do(
    options: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(NotMeasuredError, match=message):
        open_meter(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "watts"),
    [({}, 400.0), ({"gpus": [1]}, 300.0), ({"gpus": [0], "with_cpu": True}, 220.0)],
)
def test_the_joules_of_the_named_devices_are_read_from_a_daemon(
    start: Start, options: dict[str, object], watts: float
) -> None:
    now = 100.0
    daemon = start(clock=lambda: now)
    window = open_meter(zeusd=daemon.address, **options).begin()  # type: ignore[arg-type]
    now += 10.0
    assert window.end().joules == pytest.approx(10.0 * watts)


@pytest.mark.parametrize(
    ("daemon", "options", "message"),
    [
        ({}, {"gpus": [7]}, r"GPU indices \[7\] not available"),
        ({"groups": ("gpu-read",)}, {"with_cpu": True}, "'cpu-read' is not enabled"),
        ({"with_token": True}, {}, "ZEUSD_TOKEN"),
        ({"gpu_watts": ()}, {}, "it has no GPU"),
    ],
)
def test_what_a_daemon_does_not_have_is_named(
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
    daemon: dict[str, object],
    options: dict[str, object],
    message: str,
) -> None:
    monkeypatch.delenv("ZEUSD_TOKEN", raising=False)

    with pytest.raises(NotMeasuredError, match=f"--zeusd: given '127.0.0.1:.*{message}"):
        open_meter(zeusd=start(**daemon).address, **options)  # type: ignore[arg-type]


def test_a_daemon_that_is_not_there_says_what_to_start() -> None:
    with pytest.raises(NotMeasuredError, match=r"Cannot reach Zeusd at .* Start zeusd on the host"):
        open_meter(zeusd=f"127.0.0.1:{free_port()}")


@pytest.mark.parametrize("address", ["gpu-1:port", ":4938"])
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(NotMeasuredError, match="allowed: HOST or HOST:PORT"):
        open_meter(zeusd=address)
