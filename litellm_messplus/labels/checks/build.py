"""From the settings of a zoo to its checks."""

from collections.abc import Iterator

from litellm_messplus.counters import Counters
from litellm_messplus.dotted_path import load_attribute
from litellm_messplus.errors import ConfigurationError
from litellm_messplus.labels.checks.callables import CallableCheck
from litellm_messplus.labels.checks.check import Check
from litellm_messplus.labels.checks.complete import CompleteCheck
from litellm_messplus.labels.checks.json_schema import JsonSchemaCheck
from litellm_messplus.labels.checks.reference import ReferenceCheck
from litellm_messplus.labels.checks.sandbox import Sandbox
from litellm_messplus.labels.checks.source import Checks
from litellm_messplus.labels.source import Report
from litellm_messplus.settings.labels import CallableCheckSettings, ChecksSettings

BUILT_IN = (CompleteCheck.name, JsonSchemaCheck.name, ReferenceCheck.name)


def build_checks(
    settings: ChecksSettings, zoo: str, report: Report, counters: Counters
) -> Checks | None:
    """The checks of a zoo that are switched on; None without any.

    Raises ConfigurationError for a callable that cannot be imported.
    """
    sandbox = Sandbox()
    checks = [*_built_in(settings, sandbox, counters), *_callables(settings, zoo)]
    if not checks:
        return None
    return Checks(checks, sandbox, report, counters, weight=settings.weight)


def _built_in(settings: ChecksSettings, sandbox: Sandbox, counters: Counters) -> Iterator[Check]:
    if settings.complete:
        yield CompleteCheck()
    if settings.json_schema:
        yield JsonSchemaCheck(sandbox)
    if settings.reference:
        yield ReferenceCheck(sandbox, counters)


def _callables(settings: ChecksSettings, zoo: str) -> Iterator[Check]:
    for name, given in settings.callables.items():
        key = f"messplus.zoos.{zoo}.labels.checks.callables.{name}"
        if name in BUILT_IN:
            allowed = f"a name other than {', '.join(BUILT_IN)}, which are checks of our own"
            raise ConfigurationError(key, name, allowed)
        yield _callable(f"{key}.callable", name, given)


def _callable(key: str, name: str, given: CallableCheckSettings) -> Check:
    allowed = "package.module:function of a function that can be imported and called"
    try:
        function = load_attribute(given.callable)
    except Exception as error:  # the code of others may raise anything
        raise ConfigurationError(key, given.callable, f"{allowed} ({error!r})") from error
    if not callable(function):
        kind = type(function).__name__
        raise ConfigurationError(key, given.callable, f"{allowed} (this is of type {kind})")
    return CallableCheck(name, function, given.timeout_seconds)
