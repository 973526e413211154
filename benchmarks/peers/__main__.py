"""This project and what would be used in its place, over the same recordings, in one process.

    python -m benchmarks.peers [FOLDER] [--json] [--seeds 10] [--write]
    python -m benchmarks.peers FILE... --alpha 0.75

Peers: LiteLLM's own adaptive router (the functions of the installed package), ParetoBandit (the
package, where it is installed), and the paper's policy; and each model alone, the hindsight mix
and an oracle, which know every label beforehand. All get the same requests in the same orders,
and the label of each answer that they serve before the next request. What cannot run is named.

A folder has recordings under the names that `MIXED` gives an alpha; those that it lacks are
named too. `--write` puts tables and picture into docs/benchmarks.md.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from threadpoolctl import threadpool_limits

from benchmarks.drift import MIXED
from benchmarks.peers import page, picture
from benchmarks.peers.runs import Peers, Row, names, not_run
from litellm_messplus.core.hashed_ngrams import HashedNgrams
from litellm_messplus.replay.files import one_each, read_file
from litellm_messplus.replay.plan import Plan
from litellm_messplus.replay.recording import Recording, ReplayError
from litellm_messplus.runtime.terminal import progress

ROOT = Path(__file__).parents[2]
FOLDER = ROOT.parent / "shared" / "recorded"
SUFFIX = ".csv.gz"


def find(sources: Sequence[Path], alphas: Sequence[float]) -> dict[Path, float]:
    """Return the files to replay, with the alpha of each. Raises ReplayError if there are none."""
    if alphas:
        return dict(zip(sources, one_each(alphas, len(sources)), strict=True))
    (folder,) = sources or (FOLDER,)
    found = {folder / f"{name}{SUFFIX}": alpha for name, alpha in MIXED.items()}
    there = {path: alpha for path, alpha in found.items() if path.is_file()}
    for path in found.keys() - there.keys():
        print(f"not there, so not run: {path}", file=sys.stderr)
    if not there:
        raise ReplayError(f"{folder}: given no recording; allowed: {', '.join(MIXED)}")
    return there


def measure(recording: Recording, alpha: float, seeds: int) -> Iterator[Row]:
    """Run every peer on a recording, and yield a row for each."""
    with progress("runs") as bar:
        peers = Peers(recording, alpha, Plan(seeds=seeds), HashedNgrams())
        task = bar.add_task(recording.name, total=peers.runs)
        yield from peers.rows(partial(bar.advance, task))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="*", type=Path, help="a folder, or files with --alpha")
    parser.add_argument("--alpha", type=float, action="append", default=[])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    given = parser.parse_args(arguments)
    if not given.alpha and len(given.sources) > 1:
        parser.error("one folder, or files with --alpha")
    threadpool_limits(limits=1, user_api="blas")
    try:
        files = find(given.sources, given.alpha)
        read = {path: read_file(path, HashedNgrams()) for path in files}
    except ReplayError as error:
        parser.error(str(error))
    rows: list[Row] = []
    recordings = []
    for path, alpha in files.items():
        name = path.name.split(".")[0]
        rows += [row.of(name) for row in measure(read[path], alpha, given.seeds)]
        about = read[path]
        recordings.append(
            {"name": name, "alpha": alpha, "requests": len(about), "models": len(about.models)}
        )
    for peer, reason in not_run().items():
        print(f"not run: {peer}: {reason}", file=sys.stderr)
    if given.json:
        table = [row.as_dict() for row in rows]
        found = {"peers": names(rows), "recordings": recordings, "table": table}
        print(json.dumps({**found, "not_run": not_run(), "seeds": given.seeds}))
    else:
        Console().print(page.summary_table(rows))
    if given.write:
        page.write(rows, recordings, given.seeds)
        picture.draw(rows)


if __name__ == "__main__":
    main()
