"""`messplus profile`, as a user runs it, on a device whose joules are known."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app
from litellm_messplus.energy.meter import NotMeasuredError, Reading
from litellm_messplus.energy.profile import EnergyProfile, load_profile
from tests.support.simulated_power import SimulatedDevice, SimulatedMeter
from tests.support.upstream import Reply, Upstream

DEVICE = SimulatedDevice(noise=0.001)
METER = SimulatedMeter(DEVICE)
QUICK = ("--seconds", "0.1", "--repeats", "1", "--idle-windows", "3")


def absurd(number: int, found: Reading) -> Reading:
    """Every seventh window, once idle power is known."""
    return Reading(found.seconds, -1e6) if number >= 5 and number % 7 == 0 else found


def dead(number: int, found: Reading) -> Reading:
    raise NotMeasuredError("gpu 0 counted 0 J")


SOMETIMES_ABSURD = SimulatedMeter(DEVICE, absurd)
DEAD = SimulatedMeter(DEVICE, dead)
IDLE_ALWAYS = SimulatedMeter(SimulatedDevice())


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Upstream]:
    upstream = DEVICE.upstream()
    upstream.start()
    yield upstream
    upstream.stop()


def profile(endpoint: Upstream, out: Path, meter: str, *more: str) -> Result:
    arguments = ("--url", endpoint.url, "--model", "llama-1b", "--out", str(out))
    dotted = ("--meter", f"{__name__}:{meter}")
    return CliRunner().invoke(
        app, ["profile", *arguments, *dotted, *QUICK, *more], env={"COLUMNS": "140"}
    )


def refusal(result: Result) -> str:
    """The one line that a user gets; the status is not 0."""
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    text = str(result.exception.code)
    assert text.startswith("messplus: ")
    assert "\n" not in text
    return text


def assert_known(found: EnergyProfile) -> None:
    """Within a tenth of what the device takes."""
    assert found.joules_per_prompt_token == pytest.approx(DEVICE.joules_per_prompt_token, rel=0.1)
    assert found.joules_per_completion_token == pytest.approx(
        DEVICE.joules_per_completion_token, rel=0.1
    )
    assert found.idle_watts == pytest.approx(DEVICE.idle_watts, rel=0.01)


def test_the_joules_of_the_device_are_recovered(endpoint: Upstream, tmp_path: Path) -> None:
    out = tmp_path / "llama-1b.energy.yaml"

    result = profile(endpoint, out, "METER")

    assert result.exit_code == 0, result.exception
    found = load_profile(out, model="llama-1b")
    assert_known(found)
    assert found.relative_error < 0.1
    for figure in (
        found.idle_watts,
        found.relative_error,
        found.standard_errors.joules_per_request,
    ):
        assert figure == float(f"{figure:.6g}")
    assert (found.concurrency, found.windows, found.dropped) == (4, 9, {})
    assert [each.concurrency for each in found.other_concurrencies] == [1, 16]
    assert (found.meter, found.sensors) == ("simulated", ("simulated gpu 0",))
    for shown in ("per completion token", "relative error", "4 at a time *", "idle: 60"):
        assert shown in result.output

    result = profile(endpoint, out, "METER", "--json", "--concurrency", "2")
    assert result.exit_code == 0, result.exception
    found = EnergyProfile.model_validate(json.loads(result.stdout))
    assert found == load_profile(out, model="llama-1b")


def test_absurd_readings_are_dropped_and_counted(endpoint: Upstream, tmp_path: Path) -> None:
    out = tmp_path / "profile.yaml"

    result = profile(endpoint, out, "SOMETIMES_ABSURD")

    assert result.exit_code == 0, result.exception
    found = load_profile(out, model="llama-1b")
    assert_known(found)
    assert found.dropped == {"less energy than idle": 4}
    assert "less energy than idle: 4" in result.output


def test_a_dead_meter_stops_before_any_request(endpoint: Upstream, tmp_path: Path) -> None:
    endpoint.requests.clear()

    assert "gpu 0 counted 0 J" in refusal(profile(endpoint, tmp_path / "profile.yaml", "DEAD"))
    assert endpoint.requests == []
    assert not (tmp_path / "profile.yaml").exists()


def test_the_energy_of_another_device_is_no_profile(endpoint: Upstream, tmp_path: Path) -> None:
    """Such as --gpu with the index of a card that does not serve the model."""
    text = refusal(profile(endpoint, tmp_path / "profile.yaml", "IDLE_ALWAYS"))

    assert "0 windows can be used" in text
    assert "of 27 windows were dropped" in text
    assert not (tmp_path / "profile.yaml").exists()


def test_an_endpoint_without_the_model_is_an_error_at_once(tmp_path: Path) -> None:
    upstream = Upstream(lambda model, body: Reply(status=404))
    upstream.start()
    try:
        text = refusal(profile(upstream, tmp_path / "profile.yaml", "METER"))
    finally:
        upstream.stop()

    assert "answered llama-1b with status 404" in text


def test_requests_that_fail_later_cost_their_windows_alone(tmp_path: Path) -> None:
    """Those of one length of prompts, after the warm-up."""
    working = DEVICE.upstream()
    script = working.script

    def sometimes(model: str, body: dict[str, object]) -> Reply:
        failing = 30 < len(str(body["prompt"]).split()) < 40 and body["max_tokens"] == 16
        return Reply(status=500) if failing else script(model, body)

    working.script = sometimes
    working.start()
    try:
        result = profile(working, tmp_path / "profile.yaml", "METER", "--concurrency", "4")
    finally:
        working.stop()

    assert result.exit_code == 0, result.exception
    assert load_profile(tmp_path / "profile.yaml", model="llama-1b").dropped == {
        "a request failed": 1
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--concurrency", "1,4", "--serving-concurrency", "2"), "--serving-concurrency: given 2"),
        (("--prompt-tokens", "64"), "--prompt-tokens: given '64'"),
        (("--out", "/"), "--out: given '/'"),
        (("--out", "nowhere/at/all.yaml"), "--out: given 'nowhere/at/all.yaml'"),
        (("--meter", "nowhere:at_all"), "--meter: given 'nowhere:at_all'"),
    ],
)
def test_options_that_cannot_be_honoured_are_named(
    endpoint: Upstream, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in refusal(profile(endpoint, tmp_path / "profile.yaml", "METER", *options))
    for option in ("--gpu", "--concurrency", "--prompt-tokens"):
        result = profile(endpoint, tmp_path / "profile.yaml", "METER", option, "many")
        assert result.exit_code == 2
        assert option in result.output
        assert "given 'many'" in result.output
