"""Records with any values that their columns may have, drawn by hypothesis."""

from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

import numpy as np
from hypothesis import strategies as st

from litellm_messplus.records import Record
from litellm_messplus.rows import Declared, columns_of, rebuilt
from litellm_messplus.store.log import TABLE_OF


class Text(str):
    """A text of a class of its own, as libraries have them."""


TEXTS = st.text(st.characters(), max_size=12)
"""Zero characters and unpaired surrogates too."""
FLOATS = st.floats(allow_nan=False)
NARROW = st.floats(width=32, allow_nan=False)
TIMES = st.datetimes(
    datetime(1971, 1, 1),
    datetime(2100, 1, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))]),
)
VECTORS = st.lists(NARROW, max_size=4).map(lambda numbers: np.array(numbers, np.float32))
PLAIN: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | FLOATS | TEXTS
JSON = st.dictionaries(
    TEXTS,
    st.recursive(
        PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_size=3,
)


def values_for(declared: Declared) -> st.SearchStrategy[Any]:
    """Any value of a column."""
    found = _present(declared.base)
    return st.none() | found if declared.is_optional else found


def _present(base: type) -> st.SearchStrategy[Any]:
    if issubclass(base, Enum):
        return st.sampled_from(list(base))
    if base is np.ndarray:
        return VECTORS
    if base is datetime:
        return TIMES
    if base is bool:
        return st.booleans() | st.booleans().map(np.bool_)
    if base is int:
        return st.integers() | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    if base is float:
        return (
            FLOATS | FLOATS.map(np.float64) | st.floats(width=32, allow_nan=False).map(np.float32)
        )
    if issubclass(base, tuple):
        return st.lists(TEXTS, max_size=3).map(tuple)
    if issubclass(base, dict):
        return JSON
    assert base is str
    return TEXTS | TEXTS.map(Text)


def of_kind(kind: type[Record]) -> st.SearchStrategy[Record]:
    """Any record of a kind, with every facet or none of it."""
    columns = {each.name: values_for(each) for each in columns_of(kind)}
    return st.fixed_dictionaries(columns).map(lambda row: rebuilt(kind, row))


records = st.one_of(*map(of_kind, TABLE_OF))
