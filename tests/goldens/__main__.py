"""`python -m tests.goldens`: hold what is recorded against the goldens, or `--write` them anew."""

import logging
import sys
from argparse import ArgumentParser
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import print_exc

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
    failed: list[str] = []
    for kind in KINDS:
        if given.only and kind.__name__ not in given.only:
            continue
        started = still.machine_clock()
        with TemporaryDirectory() as folder, chdir(folder):
            still.begin()
            try:
                recorded = kind(Path(folder))
            except Exception:  # the other kinds can still be compared
                failed.append(kind.__name__)
                print_exc()
                continue
        found |= recorded
        _write(recorded, DATA if given.write else given.to)
        print(f"{kind.__name__}: {still.machine_clock() - started:.1f} s", file=sys.stderr)
    if given.write and not given.only and not failed:
        for old in set(read(DATA)) - set(found):
            (DATA / old).unlink()
    if given.to or given.write:
        return bool(failed)
    known = read(DATA)
    if given.only or failed:
        known = {name: text for name, text in known.items() if name in found}
    wrong = differences(known, found)
    print("\n".join(wrong) or "every golden is as recorded")
    print(*(f"not recorded, for it failed: {kind}" for kind in failed), sep="\n")
    return bool(wrong or failed)


def _write(texts: dict[str, str], target: Path | None) -> None:
    for name, text in texts.items() if target else ():
        assert target is not None
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


sys.exit(main())
