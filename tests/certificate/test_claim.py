"""The certificate of a database: what is counted, what is claimed, and what the page states."""

import asyncio
import json
import sqlite3
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litellm_messplus.certificate.claim import Certificate, Claim, certificate_of, page
from litellm_messplus.certificate.evidence import Sampling
from litellm_messplus.certificate.reading import NoCertificateError
from litellm_messplus.cli.main import app
from litellm_messplus.figures.interval import Verdict
from litellm_messplus.runtime.vocabulary import CallStatus, LabelKind
from tests.support.history import ALPHA, DAYS, FIRST_DAY, ZOO, History, make_history, migrated

LATER = FIRST_DAY + timedelta(days=DAYS + 1)


@pytest.fixture(scope="module")
def recorded() -> History:
    return make_history()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, recorded: History) -> Path:
    path = tmp_path_factory.mktemp("certificate") / "log.db"
    migrated(path, recorded)
    return path


@pytest.fixture(scope="module")
def certificate(database: Path) -> Certificate:
    return certified(database)


def certified(database: Path, **given: object) -> Certificate:
    terms = {"now": LATER, **given}
    return asyncio.run(certificate_of(str(database), ZOO, **terms))  # type: ignore[arg-type]


def since(found: Certificate, level: str = "default") -> Claim:
    return next(each.since for each in found.promises if each.service_level == level)


@pytest.mark.parametrize("level", ALPHA)
def test_labels_count_by_promise(certificate: Certificate, recorded: History, level: str) -> None:
    """Users come before checks; what users do next is no word; a second thought replaces."""
    claim = since(certificate, level)
    users = recorded.said(LabelKind.FEEDBACK, level)
    checks: dict[str, float] = {}
    for label in recorded.labels:
        if label.kind is LabelKind.CHECK:
            checks |= recorded.said(label.source, level)
    words = {**checks, **users}
    grades = recorded.said(LabelKind.JUDGE, level)

    whole = [each for each in recorded.requests if each.service_level == level]
    failed = sum(recorded.served(each).status is CallStatus.FAILURE for each in whole)
    assert (claim.requests, claim.failed) == (len(whole) - failed, failed)
    assert claim.answered_share == pytest.approx(claim.requests / len(whole))
    assert claim.alpha == ALPHA[level]
    assert claim.told == len(words)
    assert claim.graded == len(grades)
    assert claim.paired == len(words.keys() & grades.keys())
    satisfied = sum(each.requests * each.word for each in claim.said if each.word is not None)
    assert satisfied == sum(words.values())
    assert satisfied / claim.requests <= claim.low <= claim.rate <= claim.high <= 1.0


def test_the_pages_statement_gives_its_evidence(certificate: Certificate, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        rows = connection.execute(certificate.sql).fetchall()
        expected = connection.execute(certificate.expected_sql).fetchall()
    groups = [
        (promise.service_level, *asdict(each).values())
        for promise in certificate.promises
        for each in promise.since.said
    ]
    claims = [(promise.service_level, promise.since) for promise in certificate.promises]

    assert rows == groups
    assert expected == [(name, x.failed, x.expected) for name, x in claims]
    for statement in (certificate.sql, certificate.expected_sql):
        assert statement in page(certificate)


def test_it_expects_what_was_predicted_of_the_answer_that_was_given(tmp_path: Path) -> None:
    """By the answer where that was read, else by the prompt; of another model than the chosen one
    nothing was predicted."""
    recorded = make_history()
    read = recorded.requests[0].request_id
    recorded.calls = [
        replace(call, answer_said=0.18) if call.request_id == read else call
        for call in recorded.calls
    ]
    expected = dict.fromkeys(ALPHA, 0.0)
    for request in recorded.requests:
        call = recorded.served(request)
        if call.status is CallStatus.SUCCESS:
            by_prompt = request.expected_satisfaction if call.candidate == request.chosen else None
            predicted = (call.answer_said, by_prompt, request.alpha)
            expected[request.service_level] += round(
                next(each for each in predicted if each is not None), 1
            )
    migrated(tmp_path / "log.db", recorded)

    found = certified(tmp_path / "log.db")
    assert {each.service_level: each.since.expected for each in found.promises} == pytest.approx(
        expected
    )
    assert all(
        sum(group.requests * group.expected for group in each.since.said) <= each.since.expected
        for each in found.promises
    )
    claim = since(found)
    assert {0.2, 0.4, 0.7} <= {each.expected for each in claim.said}


def test_a_later_day_leaves_the_earlier_requests_out(database: Path, recorded: History) -> None:
    second = FIRST_DAY.date() + timedelta(days=1)
    found = certified(database, since=second)
    wanted = [each for each in recorded.requests if each.created_at.date() >= second]

    assert found.since == second
    counts = [each.since.requests + each.since.failed for each in found.promises]
    assert sum(counts) == len(wanted)
    assert since(found).told < since(certified(database)).told


def test_requests_whose_labels_may_come_are_left_out(database: Path, recorded: History) -> None:
    """Among them a part of a day, which the sums by day do not know."""
    times = sorted(each.created_at for each in recorded.requests)
    cut = times[len(times) // 2]
    found = certified(database, now=cut + timedelta(hours=6), wait=timedelta(hours=6))

    counts = [each.since.requests + each.since.failed for each in found.promises]
    assert sum(counts) == len(times) // 2


def test_the_last_window_is_of_the_newest_requests(database: Path, recorded: History) -> None:
    found = certified(database, window=5)

    for promise in found.promises:
        level = [x for x in recorded.requests if x.service_level == promise.service_level]
        newest = {each.request_id for each in level[-5:]}
        labelled = {
            label.request_id
            for label in recorded.labels
            if label.kind in (LabelKind.FEEDBACK, LabelKind.CHECK)
            and label.call_id == f"{label.request_id}.0"
        }
        assert promise.last is not None
        assert promise.last.requests == 5
        assert promise.last.told == len(newest & labelled)


def test_it_names_what_it_rests_on(certificate: Certificate, database: Path) -> None:
    corrected, trusted = (since(each) for each in (certificate, certified(database, trust_judge=1)))

    assert corrected.sampling is Sampling.JUDGE
    assert any("errs as often" in each for each in corrected.assumed)
    assert any("does not err" in each for each in trusted.assumed)
    assert trusted.high - trusted.low <= corrected.high - corrected.low


def test_less_confidence_never_widens_it(database: Path) -> None:
    sure, less_sure = (since(certified(database, level=level)) for level in (0.99, 0.8))

    assert sure.low <= less_sure.low <= less_sure.high <= sure.high


def test_the_verdict_is_the_intervals(certificate: Certificate) -> None:
    for promise in certificate.promises:
        claim = promise.since
        assert (claim.verdict is Verdict.KEPT) == (claim.low >= claim.alpha)
        assert (claim.verdict is Verdict.NOT_KEPT) == (claim.high < claim.alpha)


def test_an_unknown_zoo_is_answered_with_those_that_there_are(database: Path) -> None:
    with pytest.raises(NoCertificateError, match=f"given 'other'; allowed: .*{ZOO}"):
        asyncio.run(certificate_of(str(database), "other", now=LATER))


def test_a_time_without_a_request_is_refused(database: Path) -> None:
    with pytest.raises(NoCertificateError, match="earlier --since"):
        certified(database, since=LATER.date() + timedelta(days=1))


def test_pruned_days_are_refused(database: Path, tmp_path: Path) -> None:
    """The sums still count their requests, and their labels are gone."""
    copy = tmp_path / "pruned.db"
    copy.write_bytes(database.read_bytes())
    with sqlite3.connect(copy) as connection:
        connection.execute("UPDATE log_head SET start = 1")

    with pytest.raises(NoCertificateError, match="allowed: 2026-03-02 or later"):
        certified(copy, since=FIRST_DAY.date())
    assert certified(copy).since == date(2026, 3, 2)


def run(*given: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["certificate", *given])
    return found.exit_code, found.output if found.exception is None else str(found.exception)


def test_the_command_writes_json_to_a_file(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    status, shown = run(
        ZOO, "--database", str(database), "--json", "--level", "0.9", "--output", str(path)
    )
    found = json.loads(path.read_text())

    assert (status, shown) == (0, "")
    assert (found["zoo"], found["level"]) == (ZOO, 0.9)
    assert [each["service_level"] for each in found["promises"]] == sorted(ALPHA)
    assert found["until"] <= datetime.now(UTC).isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize("level", ["0.4", "1", "95"])
def test_a_level_that_is_none_is_refused(database: Path, level: str) -> None:
    _, text = run(ZOO, "--database", str(database), "--level", level)

    assert text == f"messplus: --level: given {float(level):g}; allowed: from 0.5 to below 1"


def test_a_file_that_cannot_be_written_ends_the_command(database: Path, tmp_path: Path) -> None:
    _, text = run(ZOO, "--database", str(database), "--output", str(tmp_path))

    assert text.startswith("messplus: --output:")


def test_a_reading_that_is_too_long_ends(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The statement has a bound: what it may take, where the labels have none."""
    monkeypatch.setattr("litellm_messplus.certificate.claim.LONGEST_SECONDS", 0.0)
    monkeypatch.setattr("litellm_messplus.store.reading.CHECKED_EVERY", 1)

    _, text = run(ZOO, "--database", str(database))
    assert "was given up" in text
