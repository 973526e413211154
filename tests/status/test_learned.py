"""`messplus status --learned`: what reading has taught, in words that hold, and what it saves."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from litellm_messplus.cli.main import app
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.prediction.learned import Change, ModelView, ZooView, zoo_view
from litellm_messplus.prediction.surface import read_surface
from litellm_messplus.records import Record
from litellm_messplus.state import snapshot
from litellm_messplus.state.entries import Example, Taught
from litellm_messplus.status.learned import Learned, learned_of
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import create_engine, migrate
from tests.support.builders import LARGE, MEDIUM, SMALL, adaptive_of, build_engine, pair, request


def taught(lessons: int = 400, *, tells: bool = True) -> Any:
    """An engine that saw by turns prompts of few and of many numbers: the small model fails on the
    latter, where the prompts tell anything, and the large one never does."""
    engine = build_engine()
    for number in range(lessons):
        many = number // 3 % 2
        conversation = Conversation.of_text("add " + " ".join(["17"] * (2 + 28 * many)))
        name = (SMALL, MEDIUM, LARGE)[number % 3]
        bad = many if tells else number // 6 % 2
        value = 1.0 if name == LARGE else float(not bad)
        example = Example(
            f"r{number}", "pair-1", pair(1, 0), name, False, read_surface(conversation)
        )
        engine.apply(Taught(number, "zoo", "made", f"r{number}.0", example, 9, 9.0, value))
    return engine


def view(reading: ZooView, name: str) -> ModelView:
    return next(model for model in reading.models if model.candidate == name)


def change(model: ModelView, name: str) -> Change:
    changes = [change for family in model.families for change in family.changes]
    return next(change for change in changes if change.number == name)


def requests_of(first: int, count: int = 100, **more: float) -> list[Record]:
    """Requests on which reading pays: on half of them the small model is as good as the large.
    ``more`` are the costs of other candidates, which never satisfy."""
    return [
        request(
            f"r{number}",
            alpha=0.9,
            expected_t=number + 1,
            estimated_cost={SMALL: 1.0, LARGE: 10.0, **more},
            estimated_satisfaction={
                SMALL: 0.95 if number % 2 else 0.1,
                LARGE: 0.95,
                **dict.fromkeys(more, 0.0),
            },
        )
        for number in range(first, first + count)
    ]


def write(path: Path, records: Sequence[Record]) -> Path:
    """A database with a snapshot of what was taught, and a log of requests."""

    async def written() -> None:
        engine = create_engine(f"sqlite+aiosqlite:///{path}")
        await migrate(engine)
        await log.append(engine, records)
        state = snapshot.dump(taught().state)
        await snapshots.save(engine, snapshots.Snapshot("zoo", len(records), "f" * 64, state))
        await engine.dispose()

    asyncio.run(written())
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return write(tmp_path / "messplus.db", requests_of(0))


def test_the_kind_of_prompts_that_a_model_fails_on_is_named() -> None:
    reading = zoo_view(adaptive_of(taught().state).predictor)

    digits = change(view(reading, SMALL), "digits")
    assert (digits.low, digits.high) == pytest.approx((4.0, 60.0))
    assert digits.nats < 0.0
    assert "numbers" in [family.name for family in view(reading, SMALL).families[:3]]


def test_a_model_that_fails_on_none_differs_less_by_the_prompt() -> None:
    reading = zoo_view(adaptive_of(taught().state).predictor)

    def moved(name: str) -> float:
        return sum(family.spread for family in view(reading, name).families)

    assert moved(LARGE) < moved(SMALL)


def test_families_are_ordered_by_how_much_they_move() -> None:
    for model in zoo_view(adaptive_of(taught().state).predictor).models:
        spreads = [family.spread for family in model.families]
        assert spreads == sorted(spreads, reverse=True)


def test_where_prompts_tell_nothing_there_is_no_evidence_and_nothing_is_sure() -> None:
    reading = zoo_view(adaptive_of(taught(tells=False).state).predictor)

    assert reading.evidence < 5.0
    assert not any(
        change.is_sure and abs(change.nats) > 0.5
        for model in reading.models
        for family in model.families
        for change in family.changes
    )


def test_before_the_first_label_nothing_was_learned() -> None:
    reading = zoo_view(adaptive_of(build_engine().state).predictor)

    assert reading.evidence == 0.0
    assert all(model.families == () for model in reading.models)


def test_the_snapshot_of_a_database_says_what_the_engine_says(database: Path) -> None:
    found = asyncio.run(learned_of(str(database)))

    assert found.zoos[0].reading == zoo_view(adaptive_of(taught().state).predictor)


def test_the_saving_is_that_against_the_best_fixed_mix(database: Path) -> None:
    """Half of the prompts need the large model: 5.5 a request by the prompt; the mix of means
    0.525 and 0.95 that gives 0.9 costs 1 + 9 * 0.375 / 0.425 = 8.94."""
    (saving,) = asyncio.run(learned_of(str(database))).zoos[0].savings

    assert saving.requests == 100
    assert saving.saved == pytest.approx(1.0 - 5.0 / 8.94, abs=0.01)


def test_a_removed_candidate_is_not_reckoned_with(tmp_path: Path) -> None:
    """It is in most of the newest requests, and was cheaper than the rest, but it is gone."""
    records = requests_of(0, gone=0.5) + requests_of(100, 20)
    (saving,) = asyncio.run(learned_of(str(write(tmp_path / "a.db", records)))).zoos[0].savings

    assert saving.requests == 120
    assert saving.saved == pytest.approx(1.0 - 5.0 / 8.94, abs=0.01)


def test_an_added_candidate_counts_from_its_first_request(tmp_path: Path) -> None:
    records = requests_of(0) + requests_of(100, 60, **{MEDIUM: 5.0})
    (saving,) = asyncio.run(learned_of(str(write(tmp_path / "a.db", records)))).zoos[0].savings

    assert saving.requests == 60


def test_requests_whose_estimates_name_different_candidates_are_left_out(tmp_path: Path) -> None:
    odd = [request(f"odd{number}", estimated_satisfaction={LARGE: 0.5}) for number in range(60)]
    path = write(tmp_path / "a.db", [*requests_of(0), *odd])
    (saving,) = asyncio.run(learned_of(str(path))).zoos[0].savings

    assert saving.requests == 100


def test_the_table_says_it_in_words(database: Path) -> None:
    result = CliRunner().invoke(
        app, ["status", "--learned", "--database", str(database)], env={"COLUMNS": "160"}
    )

    assert result.exit_code == 0, result.exception
    assert "against the best fixed mix" in result.stdout
    assert "it decides" in result.stdout
    assert "digits" in result.stdout


def test_the_json_reads_back_as_what_it_was(database: Path) -> None:
    result = CliRunner().invoke(app, ["status", "--learned", "--database", str(database), "--json"])

    assert Learned.of(json.loads(result.stdout)) == asyncio.run(learned_of(str(database)))
