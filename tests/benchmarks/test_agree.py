"""Every surface says the same of a log, and the benchmark that says so sees where one does not."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.agree.__main__ import compare, made
from benchmarks.agree.surfaces import surfaces


def test_surfaces_agree_with_the_rows_until_a_sum_is_altered(tmp_path: Path) -> None:
    path, now = tmp_path / "messplus.db", datetime.now(UTC)
    known = made(path, 60, now)

    found = compare(surfaces(path, now), known)

    assert found["differing"] == []
    assert found["figures"] >= 25
    assert found["surfaces"] >= 7

    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE hours SET cost = cost + 1 WHERE zoo = 'zoo' AND "
            "service_level = 'gold' AND (day, hour) = (SELECT day, hour FROM hours "
            "WHERE zoo = 'zoo' ORDER BY day DESC, hour DESC LIMIT 1)"
        )
    differing = compare(surfaces(path, now), known)["differing"]

    assert {each["zoo"] for each in differing} == {"zoo"}
    told = {(each["surface"], each["figure"]) for each in differing}
    assert {("status", "cost"), ("metrics", "cost")} <= told
    assert ("SQL requests_v", "cost") not in told, "it reads the outcomes"
