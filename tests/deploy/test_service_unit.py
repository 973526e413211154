"""The systemd unit, read by systemd's own tool. Its command is started by
`tests/end_to_end/test_service_unit.py`: systemd itself does not run in a container."""

import subprocess
from pathlib import Path

from tests.support.packages import program
from tests.support.service_unit import UNIT, moved, values


def test_systemds_own_tool_finds_nothing_wrong(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(moved(UNIT.read_text("utf-8"), tmp_path))

    done = subprocess.run(
        [program("systemd"), "--man=no", "verify", str(unit)], capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert UNIT.name not in done.stderr  # where a warning names it


def test_it_keeps_what_it_writes_in_the_folder_that_systemd_makes_for_it() -> None:
    (folder,) = values("StateDirectory")

    assert values("WorkingDirectory") == [f"/var/lib/{folder}"]
    assert values("ProtectSystem") == ["strict"]


def test_only_the_main_process_is_told_to_stop_as_it_closes_the_brain_last() -> None:
    assert values("KillMode") == ["mixed"]
