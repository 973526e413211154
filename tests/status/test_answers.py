"""How far answers are believed, and which were replaced, as `status --learned` and the page say."""

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.status.answers import ModelAnswers, ZooAnswers
from litellm_messplus.status.learned import Learned, learned_of
from tests.support.answers_read import READ, REPLACED, add_to, logged
from tests.support.builders import LARGE, MEDIUM, SMALL, build_engine


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "messplus.db"
    names = [SMALL, MEDIUM, LARGE]
    add_to(f"sqlite+aiosqlite:///{path}", build_engine(), names, list(logged("zoo", SMALL, LARGE)))
    return path


@pytest.fixture(scope="module")
def found(database: Path) -> ZooAnswers:
    answers = asyncio.run(learned_of(str(database))).zoos[0].answers
    assert answers is not None
    return answers


def of(found: ZooAnswers, name: str) -> ModelAnswers:
    return next(model for model in found.models if model.candidate == name)


def test_what_refusals_show_is_believed_as_far_as_it_has_predicted_labels(
    found: ZooAnswers,
) -> None:
    assert found.evidence > 5.0
    assert 0.5 < found.shared <= 1.0
    assert of(found, SMALL).seen == 100
    assert of(found, SMALL).low < -1.0 < 0.0 < of(found, SMALL).high


def test_those_replaced_and_what_they_cost_are_counted(found: ZooAnswers) -> None:
    small = of(found, SMALL)
    assert (small.read, small.replaced) == (READ, REPLACED)
    assert small.cost_share == pytest.approx(REPLACED / (READ + 10 * REPLACED))
    assert of(found, LARGE).read == 0


def test_verdicts_say_whether_it_was_right_to_replace_them(found: ZooAnswers) -> None:
    small = of(found, SMALL)
    assert (small.of_them.answers, small.of_them.satisfied) == (REPLACED, 0.0)
    assert small.instead.answers == REPLACED
    assert small.instead.satisfied == pytest.approx(0.8)


def test_the_predictions_of_answers_are_compared_with_those_of_prompts(found: ZooAnswers) -> None:
    calibration = of(found, SMALL).calibration
    assert calibration is not None
    assert [each.calls for each in calibration.bins] == [REPLACED, READ - REPLACED]
    assert calibration.reading.log_loss < calibration.reading.log_loss_mean
    assert of(found, LARGE).calibration is None


def test_it_is_the_same_by_the_route(database: Path) -> None:
    learned = asyncio.run(learned_of(str(database)))
    assert Learned.of(learned.as_dict()) == learned


def test_without_answers_there_is_nothing_to_say(tmp_path: Path) -> None:
    path = tmp_path / "messplus.db"
    add_to(f"sqlite+aiosqlite:///{path}", build_engine(), [], [])
    assert asyncio.run(learned_of(str(path))).zoos[0].answers is None


def test_the_terminal_says_it_in_words(database: Path) -> None:
    result = CliRunner().invoke(
        app, ["status", "--learned", "--database", str(database)], env={"COLUMNS": "200"}
    )

    assert result.exit_code == 0, result.exception
    assert "answers predict labels better than their prompts by" in result.stdout
    assert f"{REPLACED} of {READ}" in result.stdout
