"""Disks that are full, and files that nobody can write to, where a test may make them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

BLOCK = bytes(4096)


@contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[Path]:
    """A file system in memory of that size; skips the test where none may be mounted."""
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """No byte is left on the disk meanwhile."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(BLOCK):
            pass
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def read_only(paths: list[Path]) -> Iterator[None]:
    """Nobody can write to the files, not even through what is open already; skips the test where
    that takes rights that it does not have."""
    try:
        _immutable("+i", paths)
    except (OSError, subprocess.CalledProcessError) as error:
        _immutable_again(paths)
        pytest.skip(f"files cannot be made immutable here (root on ext4 or xfs can): {error}")
    try:
        yield
    finally:
        _immutable_again(paths)


def _immutable(flag: str, paths: list[Path]) -> None:
    subprocess.run(["chattr", flag, *map(str, paths)], check=True, capture_output=True)


def _immutable_again(paths: list[Path]) -> None:
    with suppress(OSError, subprocess.CalledProcessError):
        _immutable("-i", [path for path in paths if os.path.exists(path)])
