"""A change anywhere in small files, and of most of a large one, is another fingerprint."""

from pathlib import Path

import pytest

from litellm_messplus.encoders.bounds import fingerprint

SMALL, LARGE = 100_000, 20_000_000


def write(folder: Path, **contents: bytes | bytearray) -> str:
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}.bin").write_bytes(content)
    return fingerprint(folder, ["*.bin"])


def test_is_the_same_for_the_same_files_whatever_else_lies_there(tmp_path: Path) -> None:
    first = write(tmp_path / "one", weights=b"abc", words=b"def")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "README.md").write_text("read me")
    assert write(tmp_path / "two", words=b"def", weights=b"abc") == first
    assert len(first) == 12


@pytest.mark.parametrize("at", [0, SMALL // 2, SMALL - 1])
def test_one_byte_of_a_small_file_counts(tmp_path: Path, at: int) -> None:
    content = bytearray(SMALL)
    first = write(tmp_path, weights=content)
    content[at] = 1
    assert write(tmp_path, weights=content) != first


@pytest.mark.parametrize("at", [0, LARGE - 1])
def test_beginning_and_end_of_a_large_file_count(tmp_path: Path, at: int) -> None:
    content = bytearray(LARGE)
    first = write(tmp_path, weights=content)
    content[at] = 1
    assert write(tmp_path, weights=content) != first


def test_a_stretch_in_the_middle_of_a_large_file_counts(tmp_path: Path) -> None:
    """As long as a sixtieth of the file: no tensor of weights escapes that is larger."""
    content = bytearray(LARGE)
    first = write(tmp_path, weights=content)
    content[LARGE // 3 : LARGE // 3 + LARGE // 60] = b"\1" * (LARGE // 60)
    assert write(tmp_path, weights=content) != first


def test_size_name_and_number_of_the_files_count(tmp_path: Path) -> None:
    found = {
        write(tmp_path / "a", weights=bytes(LARGE)),
        write(tmp_path / "b", weights=bytes(LARGE + 1)),
        write(tmp_path / "c", other=bytes(LARGE)),
        write(tmp_path / "d", weights=bytes(LARGE), other=b""),
    }
    assert len(found) == 4
