"""Which models came to the zoos, and went: what the log tells, and what is wrong now."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from litellm_messplus.status.alerts import Alert, AlertKind
from litellm_messplus.status.report import CandidateStatus, LiveLevels
from litellm_messplus.store.candidates import LoggedChange


def candidate_status(change: LoggedChange) -> CandidateStatus:
    """Build what is shown of a change."""
    return CandidateStatus(change.zoo, change.candidate, change.change, change.at)


def candidate_alerts(live: LiveLevels) -> list[Alert]:
    """Report each zoo once whose candidates are not what they should be."""
    concerns = {zoo: each.concern for (zoo, _), each in sorted(live.items()) if each.concern}
    return [Alert(AlertKind.CANDIDATES, concern, zoo) for zoo, concern in concerns.items()]


def candidate_tables(changes: Sequence[CandidateStatus]) -> Iterator[RenderableType]:
    """Yield one table of what became of the candidates; none where nothing did."""
    if not changes:
        return
    table = Table(title="models that came, changed their price, or went")
    for title in ("when, UTC", "zoo", "model", "what"):
        table.add_column(title)
    for each in changes:
        table.add_row(
            f"{each.at:%Y-%m-%d %H:%M:%S}", Text(each.zoo), Text(each.candidate), each.change.value
        )
    yield table
