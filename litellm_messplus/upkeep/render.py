"""A report as a table for the terminal."""

from rich.table import Table

from litellm_messplus.upkeep.finding import Outcome, Report

STYLES = {
    Outcome.SOUND: "green",
    Outcome.NOTE: "yellow",
    Outcome.SKIPPED: "dim",
    Outcome.WRONG: "red",
}


def render(report: Report) -> Table:
    """One row a finding."""
    table = Table(title=report.database, title_justify="left")
    for name in ("check", "result", "found"):
        table.add_column(name, overflow="fold")
    for finding in report.findings:
        style = STYLES[finding.outcome]
        result = f"[{style}]{finding.outcome.value}[/{style}]"
        table.add_row(finding.check, result, _plain(finding.told))
    return table


def _plain(text: str) -> str:
    """Without what rich would take for a style."""
    return text.replace("[", r"\[")
