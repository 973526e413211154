"""Parquet files, with the extra `parquet`: a proxy serves without it.

polars takes 180 MB, and only archives of old requests, and replays or imports of such files, need
it. Other packages that read and write Parquet are as large, or need pandas.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Literal

from litellm_messplus.runtime.errors import MessplusError

Kind = Literal["text", "number", "whole", "truth", "time", "bytes"]
"""The type of a column's values; any may be missing."""
INSTALL = "Parquet needs polars, which is not installed: pip install 'litellm-messplus[parquet]'"


class ParquetError(MessplusError):
    """A file cannot be read as Parquet, or the extra is not installed."""


def is_installed() -> bool:
    """Tell whether the extra is installed, without importing it."""
    return find_spec("polars") is not None


def require() -> None:
    """Raise ParquetError if the extra is not installed, before any work begins."""
    if not is_installed():
        raise ParquetError(INSTALL)


def write(file: BinaryIO, columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, Kind]) -> None:
    """Write columns of the same length. Raises OSError, and ParquetError without the extra."""
    pl = _polars()
    types = {
        "text": pl.String(),
        "number": pl.Float64(),
        "whole": pl.Int64(),
        "truth": pl.Boolean(),
        "time": pl.Datetime("us", "UTC"),
        "bytes": pl.Binary(),
    }
    schema = {name: types[kind] for name, kind in kinds.items()}
    pl.DataFrame(dict(columns), schema=schema).write_parquet(file)


def read(path: Path, names: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Read columns by name, all if ``names`` is None. Raises ParquetError and OSError."""
    pl = _polars()
    try:
        frame = pl.read_parquet(path, columns=None if names is None else list(names))
    except pl.exceptions.PolarsError as error:
        raise ParquetError((str(error).splitlines() or [type(error).__name__])[0]) from error
    found: dict[str, list[Any]] = frame.to_dict(as_series=False)
    return found


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read row by row. Raises ParquetError and OSError."""
    columns = read(path)
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise ParquetError(INSTALL) from error
    return polars
