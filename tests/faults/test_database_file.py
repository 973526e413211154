"""What can happen to a SQLite file under load: requests are served, and labels kept or refused."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.disks import filled, read_only, small_disk
from tests.support.faults import Fault, Row, conclude
from tests.support.load import Load
from tests.support.patience import until
from tests.support.proxy import Config
from tests.support.warm_start import WarmProxy

pytestmark = pytest.mark.faults

SOME = 20
REFUSED = 8
"""Verdicts: two of each client, which waits 5 s for each."""
LOCKED_SECONDS = 10.0


def test_a_full_disk(config: Config, proxy: WarmProxy, rows: list[Row]) -> None:
    with small_disk(proxy.folder / "disk", megabytes=128) as disk:  # a history has room in it
        config["messplus"]["database"] = f"sqlite+aiosqlite:///{disk}/messplus.db"
        proxy.start()
        with Load(proxy) as load:
            load.until_acknowledged(SOME)
            with filled(disk):
                until_refused(load, proxy)
            load.until_acknowledged(SOME)
        proxy.stop()

        conclude(rows, Fault.DISK_FULL, proxy, load, "goes on when there is room")


def test_a_database_that_another_writer_locks(proxy: WarmProxy, rows: list[Row]) -> None:
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
        with closing(proxy.database()) as other:
            other.execute("BEGIN IMMEDIATE")
            before = load.tally.served
            time.sleep(LOCKED_SECONDS)
            served = load.tally.served - before
            other.rollback()
        load.until_acknowledged(SOME)
    proxy.stop()

    note = f"{served} served in the {LOCKED_SECONDS:g} s"
    conclude(rows, Fault.LOCKED, proxy, load, note)
    assert served > 0


def test_a_database_file_that_goes_away_and_comes_back(proxy: WarmProxy, rows: list[Row]) -> None:
    proxy.start()
    aside = proxy.folder / "aside"
    aside.mkdir()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
        moved = [path.rename(aside / path.name) for path in files(proxy)]
        until_refused(load, proxy)
        acknowledged = len(load.tally.acknowledged)
        load.until_served(SOME)
        assert len(load.tally.acknowledged) == acknowledged
        for path in moved:
            path.rename(proxy.folder / path.name)
        load.until_acknowledged(SOME)
    proxy.stop()

    conclude(rows, Fault.FILE_GONE, proxy, load, "goes on when it is back")


def test_a_database_that_becomes_read_only(proxy: WarmProxy, rows: list[Row]) -> None:
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(SOME)
        # Not the -shm, which SQLite maps: a system that refuses to write a mapped page ends it.
        taken = [path for path in files(proxy) if not path.name.endswith("-shm")]
        with read_only(taken):
            until_refused(load, proxy)
        load.until_acknowledged(SOME)
    proxy.stop()

    conclude(rows, Fault.READ_ONLY, proxy, load, "goes on when it can be written")


def test_a_read_only_database_stops_the_start(proxy: WarmProxy) -> None:
    proxy.start()
    proxy.stop()
    with read_only(files(proxy)):
        proxy.launch().wait(timeout=60)

    assert "messplus.database: given" in proxy.log
    assert "both to be written" in proxy.log


def test_a_corrupt_page(proxy: WarmProxy, rows: list[Row]) -> None:
    """Where the log's newest calls are looked up, while the proxy serves; and its repair."""
    proxy.start()
    with Load(proxy) as load:
        load.until_acknowledged(5 * SOME)
        page, before = corrupt(proxy, "calls")
        until(lambda: "malformed" in proxy.log)
        load.until_served(SOME)
        proxy.kill()
        restore(proxy, page, before)
        proxy.start()
        load.until_acknowledged(SOME)
    proxy.stop()

    note = "the page restored before the next start"
    conclude(rows, Fault.CORRUPT, proxy, load, note, cuts=True)


def until_refused(load: Load, proxy: WarmProxy) -> None:
    """Wait until the clients know that the database does not take their verdicts."""
    enough = load.tally.refused + REFUSED
    until(lambda: load.tally.refused >= enough, lambda: proxy.log[-3000:])


def files(proxy: WarmProxy) -> list[Path]:
    """Of the database: itself, and SQLite's own beside it."""
    found = sorted(proxy.folder.glob("messplus.db*"))
    return [path for path in found if path.is_file()]  # the socket is none


def corrupt(proxy: WarmProxy, table: str) -> tuple[int, bytes]:
    """Spoil the first page of a table, as a disk might; says where, and what was there."""
    with closing(sqlite3.connect(proxy.folder / "messplus.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()
    place = (root - 1) * size
    with (proxy.folder / "messplus.db").open("r+b") as file:
        file.seek(place)
        before = file.read(size)
        file.seek(place)
        file.write(b"\xff" * size)
    return place, before


def restore(proxy: WarmProxy, place: int, before: bytes) -> None:
    with (proxy.folder / "messplus.db").open("r+b") as file:
        file.seek(place)
        file.write(before)
