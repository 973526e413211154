"""`python -m tests.goldens`: hold what is recorded against the goldens, or `--write` them anew."""

import logging
import sys
from argparse import ArgumentParser
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.goldens import still
from tests.goldens.compared import DATA, differences, read


def main() -> int:
    """Record into a folder, the goldens' own under `--write`, and compare."""
    parser = ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the goldens")
    parser.add_argument("--to", type=Path, help="leave what was recorded in that folder")
    parser.add_argument("--only", action="append", metavar="KIND", help="such as `schema`")
    given = parser.parse_args()
    still.install()
    logging.getLogger("litellm_messplus").setLevel(logging.CRITICAL)
    from tests.goldens.kinds import KINDS

    found: dict[str, str] = {}
    for kind in KINDS:
        if given.only and kind.__name__ not in given.only:
            continue
        started = still.machine_clock()
        with TemporaryDirectory() as folder, chdir(folder):
            still.begin()
            found |= (given_now := kind(Path(folder)))
        _write(given_now, DATA if given.write else given.to)
        print(f"{kind.__name__}: {still.machine_clock() - started:.1f} s", file=sys.stderr)
    if given.write and not given.only:
        for old in set(read(DATA)) - set(found):
            (DATA / old).unlink()
    if given.to or given.write:
        return 0
    known = read(DATA)
    if given.only:
        known = {name: text for name, text in known.items() if name in found}
    wrong = differences(known, found)
    print("\n".join(wrong) or "every golden is as recorded")
    return bool(wrong)


def _write(texts: dict[str, str], target: Path | None) -> None:
    for name, text in texts.items() if target else ():
        assert target is not None
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


sys.exit(main())
