"""`python -m benchmarks.agree`: one log with everything in it, every surface read for every figure
that two of them share, and each held against what plain Python finds in the rows."""

import asyncio
import json
import sys
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.agree import log
from benchmarks.agree.surfaces import ALL, LAST, Key, Reading, surfaces
from benchmarks.agree.truth import Figures, Request, figures, read

ROUNDING = 1e-9


def truth(
    before: Sequence[Request], left: Sequence[Request], now: datetime
) -> dict[Key, float | None]:
    """Work out every figure; ``before`` are the requests before some were pruned."""
    since, today = (f"{log.midnight(now, days):%Y-%m-%d}" for days in (1, 0))
    found: dict[Key, float | None] = {}
    streams: dict[tuple[str, str], list[Request]] = defaultdict(list)
    for each in before:
        zoo, level = each.row["zoo"], each.row["service_level"]
        streams[zoo, level].append(each)
        streams[zoo, "all streams"].append(each)
        if not level.endswith(":before"):
            streams[zoo, ALL].append(each)
    kept = {each.row["request_id"] for each in left}
    for whose, requests in streams.items():
        newest = [each for each in requests if each.row["request_id"] in kept][-LAST:]
        for scope, some in (
            *(("whole", requests), ("last", newest)),
            ("since", [each for each in requests if each.day >= since]),
            ("today", [each for each in requests if each.day == today]),
        ):
            values = figures(some)
            values |= _of_certificate(some)
            found |= {Key(scope, *whose, name): value for name, value in values.items()}
            promise = whose[0], whose[1].removesuffix(":before")
            if promise not in streams:  # which is only watched so far
                found[Key(scope, *promise, "promised")] = requests[-1].row["alpha"]
    return found


def _of_certificate(requests: Sequence[Request]) -> Figures:
    """Count what is claimed, and what got no answer."""
    failed = sum(each.served["failure"] is not None for each in requests)
    return {"claimed": len(requests) - failed, "not answered": failed}


def compare(readings: Iterable[Reading], known: dict[Key, float | None]) -> dict[str, Any]:
    """Hold what was read against what is known, of the figures that two surfaces show."""
    by_figure: dict[str, list[Reading]] = defaultdict(list)
    for each in readings:
        by_figure[each.key.figure].append(each)
    shared = {
        name: found
        for name, found in by_figure.items()
        if len({each.surface for each in found}) > 1
    }
    wrong = [
        {**each.key._asdict(), "surface": each.surface, "value": each.value,
         "truth": known.get(each.key)}
        for found in shared.values()
        for each in found
        if not _agree(each, known.get(each.key))
    ]  # fmt: skip
    shown_by = {each.surface for found in shared.values() for each in found}
    return {
        "figures": len(shared),
        "surfaces": len(shown_by),
        "compared": sum(map(len, shared.values())),
        "disagreements": len(wrong),
        "differing": wrong,
    }


def _agree(reading: Reading, known: float | None) -> bool:
    if reading.value is None or known is None:
        return not reading.value and not known
    return abs(reading.value - known) <= reading.within + ROUNDING * max(1.0, abs(known))


def made(path: Path, count: int, now: datetime) -> dict[Key, float | None]:
    """Make the log, some of it pruned; returns the truth of it."""
    asyncio.run(log.write(path, count, now))
    before = read(path)
    asyncio.run(log.prune_half(path, now))
    return truth(before, read(path), now)


def main() -> int:
    parser = ArgumentParser(prog="python -m benchmarks.agree", description=__doc__)
    parser.add_argument("--requests", type=int, default=400, help="of each routed zoo")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of lines")
    given = parser.parse_args()
    now = datetime.now(UTC)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "messplus.db"
        known = made(path, given.requests, now)
        found = compare(surfaces(path, now), known)
    if given.json:
        print(json.dumps(found))
    else:
        for each in found["differing"]:
            print(*(f"{name}: {value}" for name, value in each.items()), sep=", ")
        print(
            f"{found['figures']} figures at {found['surfaces']} surfaces, "
            f"{found['compared']} compared: {found['disagreements']} disagreements"
        )
    return int(found["disagreements"] > 0)


if __name__ == "__main__":
    sys.exit(main())
