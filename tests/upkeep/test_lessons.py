"""`messplus import --lessons`: what is known is in the log before the first request, or refused."""

import asyncio
import csv
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app
from litellm_messplus.deciding.decider import Engine
from litellm_messplus.prediction.answer import Answer, read_answer
from litellm_messplus.records import Record
from litellm_messplus.restore import keep
from litellm_messplus.state import snapshot
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.upkeep import lessons as teaching
from tests.support.builders import adaptive_of, label, request, served_call
from tests.support.recordings import recording, rows, synthetic, write_csv, write_synthetic
from tests.upkeep.conftest import PRICES, followed, one_zoo, started, url_of


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Of a proxy whose zoo has the models of `synthetic`, and counts in joules as it does."""
    path = tmp_path / "proxy_config.yaml"
    path.write_text(yaml.safe_dump(one_zoo(tmp_path / "messplus.db")))
    return path


@pytest.fixture
def source(tmp_path: Path) -> str:
    return str(write_synthetic(tmp_path / "yesterday.csv", synthetic(120)))


def teach(config: Path, *given: str) -> Result:
    return CliRunner().invoke(
        app, ["import", "--lessons", "--config", str(config), "--zoo", "zoo", *given]
    )


def start(config: Path) -> Engine:
    return asyncio.run(started(config))


async def save_snapshot(config: Path, engine: Engine) -> None:
    database = create_engine(url_of(config))
    await keep(database, engine, await log.head(database))
    await database.dispose()


def count(config: Path) -> int:
    with closing(sqlite3.connect(config.with_name("messplus.db"))) as connection:
        (found,) = connection.execute("SELECT COUNT(*) FROM lessons").fetchone()
    return int(found)


def refusal(result: Result) -> str:
    assert result.exit_code == 1, result.output
    return str(result.exception)


def test_a_taught_zoo_knows_its_models_before_the_first_request(config: Path, source: str) -> None:
    assert teach(config, source).exit_code == 0

    known = adaptive_of(start(config).state).predictor
    assert known.rate[0] < known.rate[1] < known.rate[2]
    assert all(mean.weight > 100 for mean in known.means)


def test_a_recording_with_answers_teaches_what_they_show(config: Path, tmp_path: Path) -> None:
    made = synthetic(120)
    bare = write_synthetic(tmp_path / "bare.csv", made).read_text().splitlines()
    read = list(csv.DictReader(bare))
    for row in read:
        for name in made.models:
            row[f"{name}|answer"] = "It is 4." if float(row[f"{name}|satisfied"]) else "I cannot."
    assert teach(config, str(write_csv(tmp_path / "with_answers.csv", read))).exit_code == 0

    answers = adaptive_of(start(config).state).predictor.answers
    assert answers.read.tolist() == [120] * 3
    good, bad = (
        answers.shift(0, read_answer(Answer(text)), 0.0) for text in ("It is 4.", "I cannot.")
    )
    assert bad < -0.5 < 0.5 < good


def test_teaching_moves_no_queue_and_counts_no_request(config: Path, source: str) -> None:
    teach(config, source)

    state = start(config).state
    assert state.policy.queue("default") == 0.0
    assert state.policy.answered_requests("default") == 0
    assert state.requests["default"] == 0


def test_a_dry_run_shows_what_would_be_taught_and_writes_nothing(config: Path, source: str) -> None:
    result = teach(config, source, "--dry-run")

    assert result.exit_code == 0
    assert "medium" in result.stdout
    assert "nothing was written" in result.stdout
    assert not config.with_name("messplus.db").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["other.csv"],
            "cheap, dear; allowed: the candidates of the zoo zoo (small, medium",
        ),
        (["other.csv", "--rename", "cheap=small", "--rename", "dear=small"], "same candidate"),
        (["other.csv", "--rename", "cheap"], "--rename: given cheap; allowed: MODEL=CANDIDATE"),
        (["yesterday.csv", "other.csv"], "cheap, dear"),
        (["yesterday.csv", "--zoo", "other"], "--zoo: given 'other'; allowed: zoo"),
        ([], "FILE: given none"),
    ],
)
def test_what_cannot_be_taught_is_refused_and_nothing_is_written(
    config: Path, source: str, tmp_path: Path, given: list[str], message: str
) -> None:
    write_csv(tmp_path / "other.csv", rows())
    files = [str(tmp_path / each) if each.endswith(".csv") else each for each in given]

    assert message in refusal(teach(config, *files))
    assert not config.with_name("messplus.db").exists()


def test_models_under_another_name_can_be_named(config: Path, tmp_path: Path) -> None:
    stranger = str(write_csv(tmp_path / "other.csv", rows()))

    names = ["--rename", "cheap=small", "--rename", "dear=large"]
    assert teach(config, stranger, *names).exit_code == 0
    assert count(config) == 10


def test_a_source_is_taught_once(config: Path, source: str) -> None:
    teach(config, source)

    result = teach(config, source)

    assert result.exit_code == 1
    assert "taught before" in str(result.exception)
    assert count(config) == 360


def test_what_is_forgotten_was_never_there(config: Path, source: str, tmp_path: Path) -> None:
    other = str(write_synthetic(tmp_path / "other.csv", synthetic(50, seed=1)))
    teach(config, source)
    before = snapshot.dump(start(config).state)
    teach(config, other)

    assert teach(config, other, "--forget").exit_code == 0

    assert snapshot.dump(start(config).state) == before


def test_a_snapshot_that_holds_forgotten_lessons_is_not_gone_on_from(
    config: Path, source: str
) -> None:
    """A proxy that runs while they are forgotten writes one when it stops."""
    teach(config, source)
    running = start(config)
    teach(config, "--forget")

    asyncio.run(save_snapshot(config, running))

    assert all(mean.weight == 0.0 for mean in adaptive_of(start(config).state).predictor.means)


def test_a_restart_goes_on_from_a_snapshot_with_lessons_in_it(config: Path, source: str) -> None:
    teach(config, source)
    running = start(config)
    asyncio.run(save_snapshot(config, running))

    assert snapshot.dump(start(config).state) == snapshot.dump(running.state)


def test_forgetting_what_was_not_taught_is_refused(config: Path, source: str) -> None:
    teach(config, source)

    result = teach(config, "tomorrow.csv", "--forget")

    assert result.exit_code == 1
    assert source in str(result.exception)
    assert count(config) == 360


def test_a_running_proxy_learns_the_lessons_without_a_restart(config: Path, source: str) -> None:
    running = asyncio.run(followed(config, lambda: teach(config, source)))

    assert snapshot.dump(running.state) == snapshot.dump(start(config).state)


def test_a_zoo_that_learns_as_the_paper_does_is_not_taught(tmp_path: Path, source: str) -> None:
    path = tmp_path / "paper.yaml"
    path.write_text(yaml.safe_dump(one_zoo(tmp_path / "messplus.db", policy="paper")))

    result = teach(path, source)

    assert result.exit_code == 1
    assert "policy 'adaptive'" in str(result.exception)


def test_only_the_newest_lessons_of_a_long_source_are_taken(
    config: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "MOST", 30)

    result = teach(config, source)

    assert count(config) == 30
    assert "newest 30 of 360" in result.stdout


def test_costs_in_another_unit_teach_no_lengths(config: Path, source: str) -> None:
    """The recording counts in joules, the zoo in dollars."""
    result = teach(config, source)

    estimators = start(config).state.estimators.values()
    assert "what answers cost is not taught" in " ".join(result.stdout.split())
    assert all(estimator.completion_tokens.count == 0 for estimator in estimators)


def test_costs_in_the_zoos_own_unit_teach_how_long_answers_are(tmp_path: Path, source: str) -> None:
    path = tmp_path / "joules.yaml"
    path.write_text(
        yaml.safe_dump(one_zoo(tmp_path / "joules.db", cost_unit="joule"))
        .replace("input_cost_per_token", "x")
        .replace("output_cost_per_token", "y")
    )
    given = yaml.safe_load(path.read_text())
    for deployment, joules in zip(given["model_list"], (0.01, 0.04, 0.2), strict=True):
        deployment["model_info"] = {
            "messplus": {
                **deployment["model_info"]["messplus"],
                "joules_per_completion_token": joules,
            }
        }
    path.write_text(json.dumps(given))

    assert teach(path, source).exit_code == 0

    for estimator in start(path).state.estimators.values():
        assert 80.0 < estimator.completion_tokens.value < 120.0


async def write_log(path: Path, zoos: Sequence[str]) -> None:
    """Of each zoo 80 requests, served by turns by the small model, which fails, and the large."""
    database = create_engine(f"sqlite+aiosqlite:///{path}")
    await migrate(database)
    records: list[Record] = []
    for zoo in zoos:
        for number in range(80):
            name, model = f"{zoo}-{number}", ("small", "large")[number % 2]
            records += [
                request(name, zoo=zoo, prompt=f"question {number}", encoder="another"),
                served_call(name, candidate=model),
                label(name, float(model == "large")),
            ]
    await log.append(database, records)
    await database.dispose()


def test_the_log_of_another_zoo_teaches(config: Path, tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    asyncio.run(write_log(path, ["trial"]))

    assert teach(config, str(path)).exit_code == 0

    rate = adaptive_of(start(config).state).predictor.rate
    assert rate[0] < 0.3 < 0.7 < rate[2]


def test_of_a_log_with_several_zoos_the_one_that_teaches_is_named(
    config: Path, tmp_path: Path
) -> None:
    path = tmp_path / "trial.db"
    asyncio.run(write_log(path, ["trial", "other"]))

    refused = teach(config, str(path))

    assert refused.exit_code == 1
    assert "trial or other" in str(refused.exception)
    assert teach(config, str(path), "--from-zoo", "trial").exit_code == 0


def test_an_answer_without_a_label_is_no_lesson(config: Path, tmp_path: Path) -> None:
    made = recording([[1, 0, 1]], [[1, 1, 1]], models=list(PRICES))
    path = write_synthetic(tmp_path / "one.csv", made)

    teach(config, str(path))

    assert count(config) == 3


def prune(config: Path) -> None:
    """The log of lessons alone, as if all were taught long ago."""
    asyncio.run(save_snapshot(config, start(config)))
    with closing(sqlite3.connect(config.with_name("messplus.db"))) as connection:
        connection.execute("UPDATE lessons SET created_at = '2025-01-01 00:00:00.000000'")
        connection.commit()
    command = ["prune", "--database", url_of(config), "--before", "2026-01-01", "--drop"]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert count(config) == 0


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_lessons_that_were_pruned_last(
    config: Path, source: str, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    teach(config, source)
    known = snapshot.dump(start(config).state)
    prune(config)

    for result in (
        teach(config, source, "--forget", *options),
        teach(config, "--forget", *options),
    ):
        assert result.exit_code == 1
        assert "whose lessons are in the state" in str(result.exception)
    if not options:
        again = teach(config, source)
        assert "which was taught before the log was pruned" in str(again.exception)
    assert snapshot.dump(start(config).state) == known


def test_lessons_that_were_taught_since_then_are_taken_back(
    config: Path, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(write_synthetic(tmp_path / "other.csv", synthetic(30)))
    teach(config, source)
    prune(config)
    known = snapshot.dump(start(config).state)
    assert teach(config, other).exit_code == 0
    assert snapshot.dump(start(config).state) != known
    assert teach(config, other, "--forget").exit_code == 0
    assert snapshot.dump(start(config).state) == known
