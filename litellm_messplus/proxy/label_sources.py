"""The label sources that are configured, of every zoo."""

from collections.abc import Mapping

from litellm_messplus.counters import Counters
from litellm_messplus.labels.checks.build import build_checks
from litellm_messplus.labels.desk import LabelDesk
from litellm_messplus.labels.implicit import Implicit
from litellm_messplus.labels.judge.judge import Judge
from litellm_messplus.labels.source import LabelSource, Report
from litellm_messplus.settings.schema import MessplusSettings, ZooSettings


def build_label_desk(
    settings: MessplusSettings, report: Report, counters: Counters, judges: Mapping[str, Judge]
) -> LabelDesk:
    """One desk for the process; every zoo has sources of its own.

    Raises ConfigurationError for a source that cannot be made.
    """
    sources = {
        name: _sources(name, zoo, report, counters, judges.get(name))
        for name, zoo in settings.zoos.items()
    }
    return LabelDesk(sources, counters)


def _sources(
    name: str, zoo: ZooSettings, report: Report, counters: Counters, judge: Judge | None
) -> list[LabelSource]:
    checks = build_checks(zoo.labels.checks, name, report, counters)
    next_turn = zoo.labels.implicit
    implicit = None if next_turn is None else Implicit(next_turn, report)
    sources: list[LabelSource | None] = [checks, judge, implicit]
    return [source for source in sources if source is not None]
