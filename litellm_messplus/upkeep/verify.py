"""Verifying a database: its file, tables, order, references and sums, and that the fold of it is
the state that a start, and a running proxy, go on from."""

from collections.abc import Sequence

from rich.table import Table
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.errors import ConfigurationError
from litellm_messplus.store import log
from litellm_messplus.store.reading import reading
from litellm_messplus.upkeep.finding import CheckResult, Outcome, VerifyReport
from litellm_messplus.upkeep.folding import BASES_CHECK as BASES
from litellm_messplus.upkeep.folding import (
    Configured,
    Fold,
    UnreadableLogError,
    check_bases,
    check_snapshots,
    newest_snapshots,
)
from litellm_messplus.upkeep.integrity import (
    ADVICE,
    check_file,
    check_positions,
    check_references,
    check_schema,
)
from litellm_messplus.upkeep.projections import check_projections
from litellm_messplus.upkeep.queues import Ask, check_queues

# A report as a table for the terminal.

STYLES = {
    Outcome.SOUND: "green",
    Outcome.NOTE: "yellow",
    Outcome.SKIPPED: "dim",
    Outcome.WRONG: "red",
}


def render(report: VerifyReport) -> Table:
    """Render one row a finding."""
    table = Table(title=report.database, title_justify="left")
    for name in ("check", "result", "found"):
        table.add_column(name, overflow="fold")
    for finding in report.findings:
        style = STYLES[finding.outcome]
        result = f"[{style}]{finding.outcome.value}[/{style}]"
        table.add_row(finding.check, result, _plain(finding.told))
    return table


def _plain(text: str) -> str:
    """Escape what rich would take for a style."""
    return text.replace("[", r"\[")


NO_CONFIG = "only a configuration says what the log folds into: give it with --config"
NO_URL = "a running proxy is asked with --url"
NOT_THE_LOG = "not looked at: the log is not as it was written"
NO_ORDER = "not looked at: the log has no order to fold in"


async def verify(database: str, configured: Configured | None, ask: Ask | None) -> VerifyReport:
    """Check the database at an SQLAlchemy URL, or the SQLite one at a path; it is only read.

    With ``configured`` the log is folded, and the proxy behind ``ask`` held against it. Raises
    UnreadableDatabaseError where nothing can be read, NoAnswerError where the proxy says nothing.
    """
    async with reading(database) as engine:
        return VerifyReport(_shown(database), tuple(await _findings(engine, configured, ask)))


async def _findings(
    database: AsyncEngine, configured: Configured | None, ask: Ask | None
) -> list[CheckResult]:
    findings = [await check_file(database)]
    if findings[0].outcome is Outcome.WRONG:
        return findings  # what else is read from it may be anything
    findings.append(await check_schema(database))
    if findings[-1].outcome is Outcome.WRONG:
        return findings  # nor can it be read as this version does
    findings += await check_positions(database)
    is_ordered = all(finding.outcome is not Outcome.WRONG for finding in findings)
    findings += await check_references(database)
    findings += await _of_the_sums(database, findings)
    if configured is None or not is_ordered:
        reason = NO_CONFIG if configured is None else NO_ORDER
        return [*findings, CheckResult("fold", Outcome.SKIPPED, reason)]
    findings += await _of_the_fold(database, configured, ask)
    return findings


async def _of_the_sums(database: AsyncEngine, before: Sequence[CheckResult]) -> list[CheckResult]:
    if any(finding.outcome is Outcome.WRONG for finding in before):
        return [CheckResult("sums", Outcome.SKIPPED, NOT_THE_LOG)]
    return await check_projections(database)


async def _of_the_fold(
    database: AsyncEngine, configured: Configured, ask: Ask | None
) -> list[CheckResult]:
    taken = await newest_snapshots(database, configured.engines)
    fold = Fold(database, configured.engines)
    try:
        await fold.begin()
        findings = await check_bases(database)
        findings += await check_snapshots(database, fold, taken, await log.head(database))
        if ask is None:
            return [*findings, CheckResult("queues", Outcome.SKIPPED, NO_URL)]
        return findings + await check_queues(database, fold, ask)
    except ConfigurationError as error:
        return [CheckResult(BASES, Outcome.WRONG, f"no start is possible: {error}")]
    except UnreadableLogError as error:
        return [CheckResult("fold", Outcome.WRONG, str(error), ADVICE)]


def _shown(database: str) -> str:
    try:
        url: URL = make_url(database)
    except ArgumentError:
        return database  # a path
    return url.render_as_string()
