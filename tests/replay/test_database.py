"""The plugin's own database as a recording."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from litellm_messplus.prediction.hashed_ngrams import HashedNgrams
from litellm_messplus.records import Record, RequestRecord
from litellm_messplus.replay.database import Filling
from litellm_messplus.replay.experiment import load
from litellm_messplus.replay.recording import ReplayError
from litellm_messplus.restore import keep, restore
from litellm_messplus.runtime.vocabulary import CallStatus, LabelKind
from litellm_messplus.store import log, schema
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import labels, requests
from litellm_messplus.upkeep.prune import prune
from tests.support.builders import (
    LARGE,
    NOW,
    SMALL,
    build_engine,
    energy,
    exploration_call,
    label,
    pair,
    request,
    served_call,
)
from tests.support.folding import only_zoo
from tests.support.recordings import ENCODER


def explored(request_id: str, small: float, large: float, *, zoo: str = "zoo") -> list[Record]:
    """A request that both models answered, and both answers judged."""
    return [
        request(request_id, zoo=zoo, encoder=ENCODER.name, features=pair(0.25, 0.5)),
        served_call(request_id),
        exploration_call(request_id),
        label(request_id, large),
        label(request_id, small, number=1),
    ]


def write(path: Path, records: list[Record]) -> str:
    async def go() -> None:
        engine = create_engine(f"sqlite+aiosqlite:///{path}")
        try:
            await migrate(engine)
            if records:
                await log.append(engine, records)
        finally:
            await engine.dispose()

    asyncio.run(go())
    return str(path)


def test_explorations_of_every_candidate_are_the_recording(tmp_path: Path) -> None:
    served_only: list[Record] = [request("r3"), served_call("r3"), label("r3")]
    unjudged = explored("r4", 0, 1)[:-1]
    records = explored("r1", 0, 1) + explored("r2", 1, 0) + served_only + unjudged

    (found,) = load(write(tmp_path / "messplus.db", records), ENCODER)

    assert found.name.endswith("messplus.db:zoo")
    order = [found.models.index(SMALL), found.models.index(LARGE)]
    assert found.satisfied[:, order].tolist() == [[0, 1], [1, 0]]
    assert found.cost[:, order].tolist() == [[1, 5], [1, 5]]
    assert found.prompts.features.tolist() == [[0.25, 0.5], [0.25, 0.5]]
    assert found.prompts.characters == (40, 40)
    assert found.largest == LARGE


def test_an_archive_is_what_its_database_was(tmp_path: Path) -> None:
    """Of an older version too, whose tables had fewer columns."""
    again = label("r1", 1.0, label_id="again", number=1)
    records = [*explored("r1", 0, 1), *explored("r2", 1, 0), again, request("r3")]
    records.append(energy(exploration_call("r1"), 300.0, 3.0))
    path, archive = write(tmp_path / "messplus.db", records), tmp_path / "archive"
    (of_database,) = load(path, ENCODER)
    asyncio.run(archive_all(path, archive))
    for table in (requests.name, labels.name):
        (file,) = (archive / table).glob("*.parquet")
        pl.read_parquet(file).drop("surface_version", "probability", strict=False).write_parquet(
            file
        )

    (found,) = load(str(archive), ENCODER)

    assert found.name.endswith("archive:zoo")
    assert found.models == of_database.models
    assert found.satisfied.tolist() == of_database.satisfied.tolist() == [[1, 1], [0, 1]]
    assert found.cost.tolist() == of_database.cost.tolist()
    assert found.prompts.features.tolist() == of_database.prompts.features.tolist()


async def archive_all(path: str, archive: Path) -> None:
    engine = create_engine(f"sqlite+aiosqlite:///{path}")
    zoo = build_engine()
    await keep(engine, zoo, await restore(engine, only_zoo(zoo)))
    await engine.dispose()
    await prune(path, NOW + timedelta(days=1), archive)


def test_a_call_whose_energy_was_measured_costs_what_it_took(tmp_path: Path) -> None:
    measured = energy(exploration_call("r1"), 300.0, 3.0)

    (found,) = load(write(tmp_path / "messplus.db", [*explored("r1", 0, 1), measured]), ENCODER)

    assert dict(zip(found.models, found.cost[0], strict=True)) == {SMALL: 3, LARGE: 5}


def test_a_url_is_a_database_too(tmp_path: Path) -> None:
    path = write(tmp_path / "messplus.db", explored("r1", 0, 1))

    (found,) = load(f"sqlite+aiosqlite:///{path}", ENCODER)

    assert len(found) == 1


def test_the_strongest_label_counts_and_not_the_newest(tmp_path: Path) -> None:
    judged = label("r1", 0.0, label_id="judged", kind=LabelKind.JUDGE, source="judge")
    records = [*explored("r1", 1, 1), judged]

    (found,) = load(write(tmp_path / "messplus.db", records), ENCODER)

    assert found.satisfied.tolist() == [[1, 1]]


def test_the_newest_verdict_counts(tmp_path: Path) -> None:
    records = [*explored("r1", 0, 1), label("r1", 0.4, label_id="second")]

    (found,) = load(write(tmp_path / "messplus.db", records), ENCODER)

    assert found.satisfied.tolist() == [[0, 0]]


def test_every_zoo_is_a_recording(tmp_path: Path) -> None:
    records = explored("r1", 0, 1, zoo="one") + explored("r2", 0, 1, zoo="two")

    found = load(write(tmp_path / "messplus.db", records), ENCODER)

    assert [one.name.rsplit(":", 1)[1] for one in found] == ["one", "two"]


@pytest.mark.parametrize(
    "changed", [{}, {"encoder": HashedNgrams.name, "features": None}], ids=["another's", "late"]
)
def test_without_features_of_the_encoder_it_takes_the_text(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    records = explored("r1", 0, 1)
    records[0] = request("r1", prompt="which one?", **changed)
    encoder = HashedNgrams()

    (found,) = load(write(tmp_path / "messplus.db", records), encoder)

    assert found.prompts.texts == ("which one?",)
    assert found.prompts.features[0].tolist() == encoder.encode(["which one?"])[0].tolist()
    with pytest.raises(ReplayError):
        load(write(tmp_path / "other.db", [request("r1", **changed), *records[1:]]), encoder)


@pytest.mark.parametrize(
    "changed",
    [{"cost": None}, {"is_cache_hit": True}, {"status": CallStatus.FAILURE}, {"candidate": None}],
)
def test_what_was_not_measured_is_left_out(tmp_path: Path, changed: dict[str, object]) -> None:
    records = explored("r1", 0, 1) + explored("r2", 0, 1)
    records[6] = served_call("r2", **changed)

    (found,) = load(write(tmp_path / "messplus.db", records), ENCODER)

    assert len(found) == 1


def served_by(candidate: str, count: int, *, value: float = 1.0) -> list[Record]:
    """Requests that one model answered alone, each judged."""
    encoder = HashedNgrams()
    features = encoder.encode(["which one?"])[0]
    return [
        record
        for number in range(count)
        for record in (
            request(f"{candidate}{number}", encoder=encoder.name, features=features),
            served_call(f"{candidate}{number}", candidate=candidate),
            label(f"{candidate}{number}", value),
        )
    ]


def test_of_served_requests_what_no_one_saw_is_left_open(tmp_path: Path) -> None:
    records = served_by(SMALL, 40, value=0.0) + served_by(LARGE, 60)

    (found,) = load(write(tmp_path / "messplus.db", records), HashedNgrams())

    small, large = found.models.index(SMALL), found.models.index(LARGE)
    assert found.is_known.sum(axis=0)[[small, large]].tolist() == [40, 60]
    assert (found.satisfied[:40, small] == 0.0).all()
    assert (found.satisfied[40:, large] == 1.0).all()
    assert Filling(found).note.startswith("50% of all outcomes were never seen")


def test_a_request_without_a_label_is_part_of_the_traffic(tmp_path: Path) -> None:
    *judged, request, _, _ = served_by(SMALL, 31)
    assert isinstance(request, RequestRecord)
    unjudged = served_call(request.request_id, candidate=SMALL, cost=2.5)
    records = [*judged, *served_by(LARGE, 30), request, unjudged]

    (found,) = load(write(tmp_path / "messplus.db", records), HashedNgrams())

    assert len(found) == 61
    assert found.cost[60, found.models.index(SMALL)] == 2.5
    assert not found.is_known[60].any()


def test_a_model_of_which_the_log_tells_next_to_nothing_is_left_out_and_said(
    tmp_path: Path,
) -> None:
    records = served_by(SMALL, 30) + served_by(LARGE, 30) + served_by("rare", 29)

    (found,) = load(write(tmp_path / "messplus.db", records), HashedNgrams())

    assert set(found.models) == {SMALL, LARGE}
    assert "left out, with fewer than 30 judged calls: rare (29)" in found.notes


def test_a_log_of_one_model_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "messplus.db", served_by(SMALL, 40) + served_by(LARGE, 29))

    with pytest.raises(ReplayError, match="at least 30 of two models"):
        load(path, HashedNgrams())


def test_other_databases_are_refused_and_passwords_kept(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_bytes(b"")
    with pytest.raises(ReplayError, match="is not migrated"):
        load(str(tmp_path / "other.db"), ENCODER)
    with pytest.raises(ReplayError, match="there is no database at"):
        load(str(tmp_path / "none.db"), ENCODER)
    assert not (tmp_path / "none.db").exists()

    with pytest.raises(ReplayError) as caught:
        load("mysql://me:secret@host/name", ENCODER)
    assert "secret" not in str(caught.value)


def test_a_database_of_an_older_version_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "messplus.db", [])
    monkeypatch.setattr(schema, "newest", lambda: "9999")

    with pytest.raises(ReplayError, match="start the proxy once"):
        load(path, ENCODER)
