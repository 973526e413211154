"""From the options of the command to a meter."""

import importlib
from collections.abc import Sequence

from litellm_messplus.dotted_path import load_attribute
from litellm_messplus.energy.errors import NotMeasuredError
from litellm_messplus.energy.meter import Meter
from litellm_messplus.errors import ConfigurationError

_MEMBERS = ("source", "sensors", "begin")
NOT_INSTALLED = (
    "joules are measured with Zeus, which is not installed: pip install 'litellm-messplus[energy]'"
)


def open_meter(
    *,
    dotted: str | None = None,
    zeusd: str | None = None,
    gpus: Sequence[int] | None = None,
    with_cpu: bool = False,
) -> Meter:
    """A meter of others by its dotted path, a zeusd daemon, or Zeus on this host.

    Raises NotMeasuredError where nothing can be measured, and says what to do; ConfigurationError
    for a dotted path that does not lead to a meter.
    """
    if dotted is not None:
        return _of_third_party(dotted)
    try:
        if zeusd is not None:
            from litellm_messplus.energy.zeusd_meter import open_zeusd

            return open_zeusd(zeusd, gpus, with_cpu=with_cpu)
        from litellm_messplus.energy.zeus_meter import open_zeus

        return open_zeus(gpus, with_cpu=with_cpu)
    except ImportError as missing:
        raise NotMeasuredError(f"{NOT_INSTALLED} ({missing})") from missing


def require_zeusd_client() -> None:
    """Raises NotMeasuredError where what a zeusd daemon is read with is not installed."""
    try:
        importlib.import_module("zeus.utils.zeusd")
    except ImportError as missing:
        raise NotMeasuredError(f"{NOT_INSTALLED} ({missing})") from missing


def _of_third_party(path: str) -> Meter:
    """A meter, or what makes one when called without arguments."""
    try:
        found = load_attribute(path)
        meter: Meter = found if _keeps_to_protocol(found) else found()
    except Exception as error:  # the code of others may raise anything
        raise ConfigurationError(
            "--meter", path, f"package.module:attribute of a meter ({error!r})"
        ) from error
    if not _keeps_to_protocol(meter):
        raise ConfigurationError(
            "--meter", path, f"package.module:attribute of a meter with {', '.join(_MEMBERS)}"
        )
    return meter


def _keeps_to_protocol(found: object) -> bool:
    return not isinstance(found, type) and all(hasattr(found, name) for name in _MEMBERS)
