"""Where the energy of a deployment's calls is measured, as `model_info.messplus` says."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from litellm_messplus.energy.meter import NotMeasuredError
from litellm_messplus.energy.profile import EnergyProfile
from litellm_messplus.energy.zeus import host_and_port, require_zeusd_client
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.proxy.deployments.deployment import Deployment, own_info, place_of
from litellm_messplus.proxy.deployments.prices import energy_profile


@dataclass(frozen=True, slots=True)
class EnergySource:
    """Sensors behind one zeusd daemon; deployments that name the same ones share their energy."""

    zeusd: str
    gpus: tuple[int, ...]
    with_cpu: bool


@dataclass(frozen=True, slots=True)
class MeasuredDeployment:
    """A deployment whose calls are measured, and the profile by which they share what they took."""

    source: EnergySource
    profile: EnergyProfile


def measured_deployments(
    zoos: Container[str], model_list: Sequence[Deployment]
) -> list[MeasuredDeployment]:
    """List those of the zoos that name a daemon.

    Raises ConfigurationError for one that cannot be measured as it says, and where what a daemon is
    read with is not installed. A daemon that is away now may come later.
    """
    own = [each for each in model_list if each.get("model_name") in zoos]
    found = [each for each in map(measured_deployment, own) if each is not None]
    if found:
        try:
            require_zeusd_client()
        except NotMeasuredError as error:
            raise ConfigurationError(
                "model_info.messplus.zeusd", found[0].source.zeusd, str(error)
            ) from error
    return found


def measured_deployment(deployment: Deployment) -> MeasuredDeployment | None:
    """Read how a deployment is measured; processors are counted where its profile counts them. None
    where it names no daemon.

    Raises ConfigurationError for a daemon without a profile, for what is no address or no list of
    GPUs, and for other GPUs than the profile's idle power is of.
    """
    address, gpus = own_info(deployment).get("zeusd"), own_info(deployment).get("gpus")
    place = f"{place_of(deployment)}, model_info.messplus"
    if address is None:
        if gpus is not None:
            raise ConfigurationError(f"{place}.gpus", gpus, "together with `zeusd` alone")
        return None
    profile = energy_profile(deployment)
    if profile is None:
        raise ConfigurationError(
            f"{place}.zeusd", address, "together with an `energy_profile`, which it follows"
        )
    source = EnergySource(
        _address(f"{place}.zeusd", address),
        _gpus(f"{place}.gpus", gpus, profile),
        with_cpu=any(name.startswith("cpu") for name in profile.sensors),
    )
    return MeasuredDeployment(source, profile)


def _address(key: str, given: Any) -> str:
    try:
        host, port = host_and_port(given)
    except (AttributeError, NotMeasuredError) as error:
        raise ConfigurationError(key, given, "HOST or HOST:PORT of a zeusd daemon") from error
    return f"{host}:{port}"


def _gpus(key: str, given: Any, profile: EnergyProfile) -> tuple[int, ...]:
    """Check the list of GPUs: Zeus and zeusd may number them differently, so they are only
    counted."""
    listed = [] if given is None else given
    if not isinstance(listed, list) or not all(type(each) is int and each >= 0 for each in listed):
        raise ConfigurationError(key, given, "a list of GPUs by zeusd's numbers, such as [0]")
    expected = sum(name.startswith("gpu") for name in profile.sensors)
    if len(set(listed)) != expected:
        raise ConfigurationError(
            key, given, f"the {expected} on which the profile was measured, by zeusd's numbers"
        )
    return tuple(sorted(set(listed)))
