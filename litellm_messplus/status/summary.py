"""The status for a manager: one line for each promise."""

from collections.abc import Iterator

from rich.text import Text

from litellm_messplus.status.advice import advice
from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.report import LevelStatus, Satisfaction, Status, WindowStatus


def summary(status: Status) -> Iterator[Text]:
    """Write one line for each promise, over the whole time."""
    for level in status.levels:
        parts = (*_figures(level), advice(level, status))
        yield Text(f"{level.zoo}, {level.service_level}: {'; '.join(parts)}")


def alert_lines(status: Status) -> Iterator[Text]:
    """Write one line for each alert."""
    return map(_alert, status.alerts)


def _alert(alert: Alert) -> Text:
    style = "yellow" if alert.kind is AlertKind.THIN_EVIDENCE else "bold red"
    return Text(f"{alert.subject}: {alert.message}", style=style)


def _figures(level: LevelStatus) -> Iterator[str]:
    found = level.overall.satisfaction
    promised = f"promised {_promised(found.promised, level.alpha)}"
    if not found.requests:
        yield f"no requests yet, {promised}"
        return
    yield f"{_rate(found)}, {promised}: {found.verdict_in_words}"
    yield _saved(level.overall, level.baseline)


def _rate(found: Satisfaction) -> str:
    if found.rate is None or found.low is None or found.high is None:
        return f"no verdict on {found.requests} requests"
    low, high = 100.0 * found.low, 100.0 * found.high
    return f"{100.0 * found.rate:.1f} % satisfied ({low:.1f} to {high:.1f} %)"


def _promised(promised: float, alpha: float) -> str:
    """Say the mean where alpha was changed, and alpha as it is now."""
    now = f"{100.0 * alpha:.4g} %"
    return now if promised == alpha else f"{100.0 * promised:.4g} % on average and {now} now"


def _saved(window: WindowStatus, baseline: str) -> str:
    share = window.savings.saved_share if window.savings else None
    if share is None:
        return "what was saved is unknown"
    if share < 0.0:
        return f"cost {-100.0 * share:.1f} % more than always calling {baseline}"
    return f"saved {100.0 * share:.1f} % against always calling {baseline}"
