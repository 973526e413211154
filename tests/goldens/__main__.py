"""`python -m tests.goldens`: hold what is recorded against the goldens, or `--write` them anew."""

import logging
import sys
from argparse import ArgumentParser
from contextlib import chdir
from pathlib import Path
from shutil import rmtree
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
                found |= kind(Path(folder))
            except Exception:  # the other kinds can still be compared
                failed.append(kind.__name__)
                print_exc()
        print(f"{kind.__name__}: {still.machine_clock() - started:.1f} s", file=sys.stderr)
    known, is_whole = read(DATA), not (given.only or failed)
    if given.write and is_whole:
        rmtree(DATA)
    if target := DATA if given.write else given.to:
        for name, text in found.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_text(text, encoding="utf-8", newline="")
        return bool(failed)
    wrong = differences(known if is_whole else {name: known.get(name, "") for name in found}, found)
    print("\n".join(wrong) or "every golden is as recorded")
    return bool(wrong or failed)


sys.exit(main())
