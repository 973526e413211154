"""The extra `parquet` is not needed to serve, and is named where it is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from litellm_messplus.replay.files import read_file
from litellm_messplus.replay.recording import ReplayError
from tests.support.recordings import ENCODER, rows, write_csv

EXTRA = r"pip install 'litellm-messplus\[parquet\]'"
IMPORTS_ALL = """
import sys
sys.modules["polars"] = None
from importlib import import_module
from pkgutil import walk_packages
import litellm_messplus
for room in ("serving", "store", "upkeep", "replay", "cli", "status"):
    package = import_module(f"litellm_messplus.{room}")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
from tests.support.builders import build_engine, point
engine = build_engine()
from litellm_messplus.core.engine import Question
zoo = engine.zoo
asked = Question("r1", zoo.levels["default"], point(1.0, 0.0), 10, tuple(zoo.candidates))
print(engine.decide(asked).decision.chosen)
"""


@pytest.fixture
def without_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)


def test_every_module_of_a_proxy_is_imported_and_decides() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTS_ALL],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()


@pytest.mark.usefixtures("without_polars")
def test_a_recording_in_a_csv_is_read(tmp_path: Path) -> None:
    assert read_file(write_csv(tmp_path / "zoo.csv", rows()), ENCODER).models == ("cheap", "dear")


@pytest.mark.usefixtures("without_polars")
def test_what_needs_it_names_the_extra(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(b"")

    with pytest.raises(ReplayError, match=EXTRA):
        read_file(path, ENCODER)
