"""The label sources that are configured, of every zoo."""

from litellm_messplus.counters import Counters
from litellm_messplus.labels.checks.build import build_checks
from litellm_messplus.labels.desk import LabelDesk
from litellm_messplus.labels.implicit import Implicit
from litellm_messplus.labels.source import LabelSource, Report
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings


def build_label_desk(settings: MessplusSettings, report: Report, counters: Counters) -> LabelDesk:
    """One desk for the process; every zoo has sources of its own.

    Raises ConfigurationError for a source that cannot be made.
    """
    sources = {name: _sources(name, zoo, report, counters) for name, zoo in settings.zoos.items()}
    return LabelDesk(sources, counters)


def _sources(name: str, zoo: ZooSettings, report: Report, counters: Counters) -> list[LabelSource]:
    sources: list[LabelSource] = []
    checks = build_checks(zoo.labels.checks, name, report, counters)
    if checks is not None:
        sources.append(checks)
    if zoo.labels.implicit is not None:
        sources.append(Implicit(zoo.labels.implicit, report))
    return sources
