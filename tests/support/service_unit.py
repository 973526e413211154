"""The systemd unit of `deploy/`, read line by line, and moved to where a test has its files."""

import sys
from pathlib import Path

from tests.support.markdown import ROOT

UNIT = ROOT / "deploy" / "messplus.service"


def values(name: str) -> list[str]:
    """What the unit says under a name, in its order."""
    lines = UNIT.read_text("utf-8").splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith(f"{name}=")]


def moved(text: str, folder: Path) -> str:
    """The same with this environment's commands, and files and data in ``folder``."""
    places = {
        "/opt/messplus/venv/bin": str(Path(sys.executable).parent),
        "/etc/messplus": str(folder),
        "/var/lib/messplus": str(folder / "data"),
    }
    for old, new in places.items():
        text = text.replace(old, new)
    return text
