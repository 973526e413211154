"""What the system says about processes."""

from pathlib import Path


def is_running(process_id: int) -> bool:
    """Neither gone, nor ended and waiting for its parent to notice."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields.rsplit(")", 1)[1].split()[0] not in ("Z", "X")


def children_of(process_id: int, named: str) -> list[int]:
    """Those that run with the name anywhere in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            command = (path / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == process_id and named in command and is_running(int(path.name)):
            found.append(int(path.name))
    return found
