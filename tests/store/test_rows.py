"""A record declares its columns once; table, row and what goes without texts follow from that."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType, TypeVar

from litellm_messplus.core.held import Gated
from litellm_messplus.core.hold import Hold, LinePlace
from litellm_messplus.records import Names, Record, RequestRecord
from litellm_messplus.rows import Declared, columns_of, facet, flat, rebuilt, without_words
from litellm_messplus.runtime.vocabulary import LabelKind
from litellm_messplus.store.log import TABLE_OF
from litellm_messplus.store.rows import row_of
from litellm_messplus.switching.modes import Arm, Trial
from tests.support.builders import LARGE, label, request, served_call

PLACE = LinePlace("r0", "r0", "ab", 2, Hold.WARM)


def test_a_facet_that_is_none_has_null_in_all_its_columns() -> None:
    row = row_of(request(), 1)

    for kind in (LinePlace, Gated, Names):
        assert {row[each.name] for each in columns_of(kind)} == {None}
    assert facet(LinePlace, row) is None


def test_a_row_gives_its_facets_back() -> None:
    record = replace(
        request(features=None),
        place=PLACE,
        gated=Gated((LARGE,), ("images",)),
        trial=Trial(Arm.BEFORE, would_choose=LARGE, sample_probability=0.1),
    )
    row = row_of(record, 7)

    assert (row["position"], row["turn"], row["hold"], row["arm"]) == (7, 2, "warm", "before")
    assert facet(Gated, row | {"eligible": [LARGE], "gated_by": ["images"]}) == record.gated
    assert rebuilt(RequestRecord, row) == record


@pytest.mark.parametrize("record", TABLE_OF)
def test_a_row_has_the_columns_of_its_table(record: type) -> None:
    declared = [each.name for each in columns_of(record)]

    derived = {"position", "counts"}
    assert sorted(declared) == sorted({*TABLE_OF[record].columns.keys()} - derived)
    assert len({*declared}) == len(declared)


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (request(prompt="secret", features=None), request(features=None)),
        (served_call(answer="secret"), served_call()),
        (label(kind=LabelKind.JUDGE, comment="secret"), label(kind=LabelKind.JUDGE)),
        (label(comment="sent to be kept"), label(comment="sent to be kept")),
    ],
    ids=["prompt", "answer", "a judge's comment", "a user's comment"],
)
def test_texts_that_may_quote_a_user_are_dropped(record: Record, kept: Record) -> None:
    assert flat(without_words(record)) == flat(kept)


def test_an_array_is_one_whatever_numpy_calls_it() -> None:
    """From 2.5 on numpy's `NDArray` is an alias, which is no class."""
    kind_of = TypeVar("kind_of", bound=np.generic)
    Alias = TypeAliasType("Alias", np.ndarray[Any, np.dtype[kind_of]], type_params=(kind_of,))
    column = columns_of(RequestRecord)[0].column

    for kind in (NDArray[np.float32], Alias[np.float32]):
        assert Declared("features", kind, False, column).base is np.ndarray
