"""`messplus import`: labels from elsewhere are in the log once, or refused with a reason."""

import asyncio
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from sqlalchemy import select
from typer.testing import CliRunner, Result

from litellm_messplus.cli.main import app
from litellm_messplus.records import Record
from litellm_messplus.state import snapshot
from litellm_messplus.store import log
from litellm_messplus.store.database import create_engine, migrate
from litellm_messplus.store.tables import labels
from litellm_messplus.upkeep import importing
from tests.support.builders import exploration_call, label, request, served_call
from tests.support.configured_log import sqlite
from tests.upkeep.conftest import followed, one_zoo, started

TIME = "2026-02-03T04:05:06Z"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A log with the requests r1 to r4; r3 and r4 share LiteLLM's call id."""
    path = tmp_path / "messplus.db"
    records: list[Record] = []
    for name in ("r1", "r2", "r3", "r4"):
        shared = {"litellm_call_id": "shared"} if name in ("r3", "r4") else {}
        records += [request(name, **shared), served_call(name)]
    asyncio.run(write(path, [*records, exploration_call("r1")]))
    return path


async def write(path: Path, records: Sequence[Record]) -> None:
    engine = create_engine(sqlite(path))
    await migrate(engine)
    await log.append(engine, records)
    await engine.dispose()


def read(path: Path) -> list[Any]:
    async def ask() -> list[Any]:
        engine = create_engine(sqlite(path))
        async with engine.connect() as connection:
            found = list(await connection.execute(select(labels).order_by(labels.c.position)))
        await engine.dispose()
        return found

    return asyncio.run(ask())


def csv(tmp_path: Path, text: str, name: str = "labels.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def dump(tmp_path: Path, found: object) -> Path:
    return csv(tmp_path, json.dumps(found), "labels.json")


def run(*given: object) -> Result:
    return CliRunner().invoke(app, ["import", *map(str, given)])


def import_(database: Path, file: Path, *given: str) -> Mapping[str, Any]:
    result = run(file, "--database", database, "--json", *given)
    assert result.stdout, result.exception
    found: Mapping[str, Any] = json.loads(result.stdout)
    return found


def config(database: Path, **zoo: object) -> Path:
    path = database.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(one_zoo(database, **zoo)))
    return path


def test_any_of_the_three_ids_finds_the_call(database: Path, tmp_path: Path) -> None:
    file = csv(tmp_path, "id,satisfied\nr1,true\nlitellm-r2,no\nchatcmpl-r3,1\nchatcmpl-r1-1,0\n")

    report = import_(database, file)

    assert report["written"] == 4
    assert {row.call_id: row.value for row in read(database)} == {
        "r1.0": 1.0,
        "r2.0": 0.0,
        "r3.0": 1.0,
        "r1.1": 0.0,
    }


def test_a_label_has_what_its_row_says_else_the_option_and_now(
    database: Path, tmp_path: Path
) -> None:
    before = datetime.now(UTC)
    text = f"id,score,source,time,comment\nr1,0.25,survey,{TIME},slow\nr2,1,,,\n"
    text += "r3,1,,1770091506000,\nr4,1,,1770091506,\n"

    import_(database, csv(tmp_path, text), "--source", "poll")

    found = {row.request_id: row for row in read(database)}
    first, second, *numbers = (found[name] for name in ("r1", "r2", "r3", "r4"))
    assert (first.request_id, first.kind, first.source) == ("r1", "feedback", "import:survey")
    assert (first.value, first.weight, first.comment) == (0.25, 1.0, "slow")
    for row in (first, *numbers):
        assert row.created_at == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert (second.source, second.comment) == ("import:poll", None)
    assert before <= second.created_at <= datetime.now(UTC)


@pytest.mark.parametrize("time", ["", TIME])
def test_importing_twice_counts_once_and_says_so(database: Path, tmp_path: Path, time: str) -> None:
    file = csv(tmp_path, f"id,satisfied,time\nr1,true,{time}\nlitellm-r1,true,{time}\n")

    first, second = import_(database, file), import_(database, file)

    assert (first["written"], first["already_there"]) == (1, 1)
    assert (second["written"], second["already_there"]) == (0, 2)
    assert "2 were there already" in run(file, "--database", database).stdout
    assert len(read(database)) == 1


def test_of_two_labels_of_a_call_the_later_one_is_the_newest_in_the_log(
    database: Path, tmp_path: Path
) -> None:
    """Open WebUI lists the newest first."""
    file = csv(tmp_path, "id,satisfied,time\nr1,no,2026-02-02\nr1,yes,2026-02-01\n")

    import_(database, file)

    assert [row.value for row in read(database)] == [1.0, 0.0]


def test_refused_rows_are_told_with_line_and_reason_and_the_others_written(
    database: Path, tmp_path: Path
) -> None:
    rows = [
        *("id,satisfied,score,time", "r1,true,,", "nobody,true,,", "shared,true,,", "r2,,1.5,"),
        *("r2,maybe,,", "r2,,,", "r2,1,1,", ",1,,", "r2,1,,yesterday", "r2,,nan,"),
    ]
    report = import_(database, csv(tmp_path, "\n".join(rows)))

    assert (report["rows"], report["written"], report["refused"]) == (10, 1, 9)
    assert [each["line"] for each in report["first_refused"]] == list(range(3, 12))
    assert report["refused_by_reason"] == {
        "unreadable": 5,
        "value out of range": 2,
        "unknown id": 1,
        "ambiguous id": 1,
    }
    reasons = [each["reason"] for each in report["first_refused"]]
    assert reasons[1] == "id: given 'shared', which 2 calls go by; allowed: that of one"
    assert reasons[2] == "score: given '1.5'; allowed: a number from 0 to 1"
    assert reasons[5] == "satisfied, score: given both; allowed: exactly one of them"


def test_the_first_twenty_refused_rows_are_listed_and_all_are_counted(
    database: Path, tmp_path: Path
) -> None:
    nobody = "id,satisfied\n" + "nobody,1\n" * 30

    result = run(csv(tmp_path, nobody + "r1,1\n"), "--database", database)

    assert result.exit_code == 0
    assert "30 rows were refused (unknown id: 30)" in result.stdout
    assert result.stdout.count("    line ") == 20
    assert "and 10 more" in result.stdout
    assert run(csv(tmp_path, nobody), "--database", database).exit_code == 1
    assert len(read(database)) == 1


def test_the_line_of_a_row_counts_the_lines_of_a_comment(database: Path, tmp_path: Path) -> None:
    file = csv(tmp_path, 'id,satisfied,comment\nr1,1,"two\nlines"\nnobody,1,\n')

    assert import_(database, file)["first_refused"][0]["line"] == 4


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(
    database: Path, tmp_path: Path
) -> None:
    file = csv(tmp_path, "id,satisfied\nr1,1\n")

    report = import_(database, file, "--dry-run")
    text = run(file, "--database", database, "--dry-run").stdout

    assert (report["written"], report["would_write"]) == (0, 1)
    assert "1 new labels would be written" in text
    assert "nothing was written" in text
    assert read(database) == []


def test_json_lines_with_a_line_that_is_no_json(database: Path, tmp_path: Path) -> None:
    text = '{"id": "r1", "satisfied": true}\n\n{"id": "r2",\n[1]\n{"id": "r2", "score": 0.5}\n'

    report = import_(database, csv(tmp_path, text, "labels.jsonl"))

    assert report["written"] == 2
    assert [each["line"] for each in report["first_refused"]] == [3, 4]


def test_parquet_with_its_own_types(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    times = [datetime(2026, 2, 3, 4, 5, 6), None]
    pl.DataFrame({"id": ["r1", "r2"], "satisfied": [True, False], "time": times}).write_parquet(
        path
    )

    assert import_(database, path)["written"] == 2
    assert [row.value for row in read(database)] == [1.0, 0.0]
    assert read(database)[0].created_at == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


def webui(message: str, rating: object, **changed: object) -> dict[str, object]:
    """As `Export` on the page of feedbacks writes it."""
    return {
        "id": f"feedback-{message}",
        "user_id": "user",
        "version": 0,
        "type": "rating",
        "data": {"rating": rating, "model_id": "zoo", "reason": "", "comment": "good"},
        "meta": {"model_id": "zoo", "message_id": message, "message_index": 2, "chat_id": "chat"},
        "snapshot": {"chat": {"id": "chat"}},
        "created_at": 1_770_000_000,
        "updated_at": 1_770_000_100,
        **changed,
    }


def test_an_export_of_open_webui(database: Path, tmp_path: Path) -> None:
    found = [webui("litellm-r1", 1), webui("litellm-r2", -1), webui("r3", None), webui("x", 1)]

    report = import_(database, dump(tmp_path, found))

    assert (report["format"], report["written"]) == ("openwebui", 2)
    assert report["sources"] == ["import:openwebui"]
    assert [each["reason"] for each in report["first_refused"]] == [
        "data.rating: given nothing; allowed: 1 or -1",
        "id: given 'x'; allowed: one that the log knows",
    ]
    rows = read(database)
    assert [(row.call_id, row.value, row.comment) for row in rows] == [
        ("r1.0", 1.0, "good"),
        ("r2.0", 0.0, "good"),
    ]
    assert rows[0].created_at == datetime.fromtimestamp(1_770_000_100, UTC)


def score(trace: str, value: object, kind: str = "NUMERIC", **changed: object) -> dict[str, object]:
    return {
        "id": f"score-{trace}",
        "timestamp": "2026-02-03T04:05:06.000Z",
        "name": "thumb",
        "source": "API",
        "dataType": kind,
        "value": value,
        "comment": None,
        "traceId": trace,
        "observationId": None,
        **changed,
    }


def test_an_export_of_langfuse(database: Path, tmp_path: Path) -> None:
    found = [
        score("litellm-r1", 0.5),
        score("t", 0, "BOOLEAN", observationId="time-04-05-06-000001_chatcmpl-r2"),
        score("t", 1, "BOOLEAN", metadata={"litellm_call_id": "litellm-r1"}),
        score("r3", "good", "CATEGORICAL"),
        score("r3", 7),
    ]
    report = import_(database, dump(tmp_path, {"data": found, "meta": {"page": 1}}))

    assert (report["format"], report["written"], report["refused"]) == ("langfuse", 3, 2)
    assert "dataType: given 'CATEGORICAL'" in report["first_refused"][0]["reason"]
    assert {(row.call_id, row.value) for row in read(database)} == {
        ("r1.0", 0.5),
        ("r2.0", 0.0),
        ("r1.0", 1.0),
    }


def test_a_trace_id_without_dashes_is_that_with_dashes(database: Path, tmp_path: Path) -> None:
    """Version 4 of Langfuse's SDK takes them out of LiteLLM's id."""
    dashed = "0f8fad5b-d9cb-469f-a165-70867728950e"
    asyncio.run(write(database, [request("r5", litellm_call_id=dashed), served_call("r5")]))

    file = csv(tmp_path, f"trace_id,name,value,data_type\n{dashed.replace('-', '')},up,1,NUMERIC\n")

    assert import_(database, file)["written"] == 1
    assert read(database)[0].call_id == "r5.0"


def test_of_several_scores_the_one_to_import_is_named(database: Path, tmp_path: Path) -> None:
    file = dump(tmp_path, [score("r1", 1), score("r1", 1, name="toxicity")])

    refused = run(file, "--database", database)
    report = import_(database, file, "--score", "thumb")

    assert refused.exit_code == 1
    assert "given the names thumb, toxicity" in str(refused.exception)
    assert (report["written"], report["left_out"]) == (1, 1)
    assert report["sources"] == ["import:langfuse.thumb"]


def test_a_call_takes_so_many_labels_and_a_file_so_many_rows(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "MOST_LABELS", 3)
    monkeypatch.setattr(importing, "MOST_ROWS", 3)
    asyncio.run(write(database, [label("r1", label_id=str(each)) for each in range(2)]))
    text = "id,score\nr1,0.1\nr1,0.2\nr2,1\n"

    report = import_(database, csv(tmp_path, text))

    assert report["written"] == 2
    assert report["refused_by_reason"] == {"too many labels": 1}
    assert "at most 3" in report["first_refused"][0]["reason"]
    result = run(csv(tmp_path, text + "r2,0\n"), "--database", database)
    assert "given more than 3" in str(result.exception)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("labels.csv", "request,satisfied\nr1,1\n", "given request, satisfied; allowed: with id"),
        ("labels.csv", "id,satisfied\n", "rows: given none"),
        ("labels.txt", "id,satisfied\nr1,1\n", "unknown kind; allowed: .csv"),
        ("labels.json", "{", "cannot be read"),
        ("labels.json", '{"a": 1}', "allowed: a list of objects"),
        ("labels.parquet", "no", "cannot be read"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_line(
    database: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    result = run(csv(tmp_path, text, name), "--database", database)

    assert result.exit_code == 1
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["labels.csv", "--database", "missing.db"], "there is no database"),
        (["labels.csv", "--database", "x.db", "--config", "x.yaml"], "given both; allowed: one"),
        (["labels.csv", "other.csv", "--database", "x.db"], "FILE: given 2; allowed: one file"),
        (["--database", "x.db"], "FILE: given 0; allowed: one file"),
        (["labels.csv", "--zoo", "zoo"], "--zoo: allowed with --lessons alone"),
        (["labels.csv", "--forget"], "--forget: allowed with --lessons alone"),
        (["labels.csv", "--lessons", "--json"], "--json: allowed without --lessons alone"),
        (["labels.csv", "--source", "x" * 58, "--database", "x.db"], "--source: given 58"),
        (["labels.csv", "--score", "up", "--database", "x.db"], "allowed: for langfuse alone"),
    ],
)
def test_options_that_cannot_be_honoured_are_named_and_no_database_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    csv(tmp_path, "id,satisfied\nr1,1\n")

    result = run(*given)

    assert result.exit_code == 1
    assert message in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_a_stated_response_bias_is_in_the_weight(database: Path, tmp_path: Path) -> None:
    """As in that of a user's own word: 2 (1 + 2 value) / 4."""
    file = csv(tmp_path, "id,satisfied\nr1,1\nr2,0\n")

    result = run(file, "--config", config(database, response_bias=3.0))

    assert result.exit_code == 0
    assert {row.value: row.weight for row in read(database)} == {1.0: 1.5, 0.0: 0.5}


def test_of_two_imports_at_once_one_is_told_to_try_again(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one wrote after this one had looked."""
    file = csv(tmp_path, "id,satisfied\nr2,1\nr1,1\n")
    import_(database, csv(tmp_path, "id,satisfied\nr1,1\n", "other.csv"))

    async def none(*_: object) -> set[str]:
        return set()

    monkeypatch.setattr(importing, "known_labels", none)
    result = run(file, "--database", database)

    assert result.exit_code == 1
    assert "nothing was written; allowed: the same command again" in str(result.exception)
    assert len(read(database)) == 1


def test_a_running_proxy_counts_them_as_a_restarted_one_does(
    database: Path, tmp_path: Path
) -> None:
    path, file = config(database), csv(tmp_path, "id,satisfied\nr1,0\nr2,1\n")

    running = asyncio.run(followed(path, lambda: run(file, "--config", path)))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM snapshots")  # or the fold would begin at its end
        connection.commit()

    assert running.state.policy.answered_requests("default") == 2
    assert snapshot.dump(running.state) == snapshot.dump(asyncio.run(started(path)).state)
