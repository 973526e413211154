"""The definition of a row of the log.

A record is a frozen dataclass. Each field is a `column`, or a facet: a dataclass of two or more
columns that belong together, defined next to their feature. A facet that is None has NULL in all
its columns. From this are derived the table and the row to insert (`store/rows.py`), what the route
shows (`inspecting/logged.py`), what is dropped without `store_text`, and `docs/tables.md`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from itertools import chain
from operator import attrgetter
from types import UnionType
from typing import (
    Any,
    NamedTuple,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from litellm_messplus.runtime.stand_ins import replace

Facet = TypeVar("Facet")
Found = TypeVar("Found")
UNBOUNDED = 0
"""The size of a text of any length."""
COLUMN = "column"
"""The key of the `Column` in the metadata of a field."""
FOREIGN = -1
"""The size of an id made by others, of any length."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its documentation, in the database too, and its properties.

    ``size`` is the most characters of a text. The route shows it if it ``is_public``. In records
    for which ``words`` is true, a text may quote a user: it is kept only with `store_text`.
    ``earlier`` is the value of rows from earlier versions; if they have none, it ``is_nullable``
    although every record has a value.
    """

    doc: str
    size: int | None = None
    is_public: bool = False
    words: Callable[[Any], bool] | None = None
    index: bool = False
    is_large: bool = False
    is_nullable: bool = False
    earlier: bool | str | None = None


def column(
    doc: str,
    *,
    init: bool = True,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    **properties: Any,
) -> Any:
    """Make a field that is a column, with the properties of `Column`."""
    plain = {"init": init, "default": default, "default_factory": default_factory}
    return field(metadata={COLUMN: Column(doc, **properties)}, **plain)


def public(doc: str, **given: Any) -> Any:
    """Make a column that the route shows."""
    return column(doc, is_public=True, **given)


@dataclass_transform(field_specifiers=(column, public), frozen_default=True)
def record(kind: type[Facet]) -> type[Facet]:
    """Make a class a record or a facet."""
    return dataclass(frozen=True, slots=True)(kind)


class Declared(NamedTuple):
    """A column of a record: its name, the type of its values, and whether it may be NULL."""

    name: str
    kind: Any
    is_optional: bool
    column: Column

    @property
    def base(self) -> type:
        """The class of the values, without type arguments; numpy's `NDArray` is an alias from 2.5
        on."""
        found: Any = get_origin(self.kind) or self.kind
        while (meant := getattr(found, "__value__", None)) is not None:
            found = get_origin(meant) or meant
        return cast(type, found)


def by_type(make: Callable[[Any], Found]) -> Callable[[Any], Found]:
    """Cache what is computed per class, of which there are few."""
    return cache(make)


@by_type
def columns_of(record: Any) -> list[Declared]:
    """Return the columns of a record or a facet in order, with those of facets in place."""
    found: list[Declared] = []
    for each in fields(record):
        kind, is_optional = _plain(_hints(record)[each.name])
        if is_dataclass(kind):
            inner = columns_of(kind)
            found += (one._replace(is_optional=is_optional or one.is_optional) for one in inner)
        else:
            found.append(Declared(each.name, kind, is_optional, each.metadata[COLUMN]))
    return found


def flat(record: Any) -> dict[str, Any]:
    """Return the values of all columns by name."""
    return dict(zip(names_of(type(record)), values_of(record)))  # noqa: B905 -- strict took a tenth


def names_of(record: type) -> tuple[str, ...]:
    """Return the names of all columns, in the order of ``values_of``."""
    return _layout(record).names


def values_of(record: Any) -> list[Any]:
    """Return the values of all columns."""
    layout = _layout(type(record))
    values = [*layout.own(record)]
    for name, read, nothing in layout.facets:
        found = getattr(record, name)
        values += nothing if found is None else read(found)
    return values


def facet(kind: type[Facet], row: Mapping[Any, Any]) -> Facet | None:
    """Read a facet from a row that has its columns; None if all of them are NULL."""
    values = [row[name] for name in names_of(kind)]
    return None if values.count(None) == len(values) else from_values(kind, values)


def rebuilt(kind: type[Facet], row: Mapping[Any, Any]) -> Facet:
    """Read a record or a facet from a row that has its columns."""
    return from_values(kind, [row[name] for name in names_of(kind)])


def from_values(kind: type[Facet], values: Sequence[Any]) -> Facet:
    """Make the record of what ``values_of`` returned, in which enumerations may be texts and tuples
    lists."""
    making = _making(kind)
    found = dict(zip(making.names, values))  # noqa: B905 -- those of facets follow
    for name, kept in making.kept:
        if found[name] is not None:
            found[name] = kept(found[name])
    for name in making.computed:
        del found[name]
    for name, facet_kind, start, end, is_optional in making.facets:
        part = values[start:end]
        is_missing = is_optional and part.count(None) == len(part)
        found[name] = None if is_missing else from_values(facet_kind, part)
    return kind(**found)


class _Making(NamedTuple):
    """The making of a record from its values: the ``names`` of its own columns, which come first;
    which of them are no built-in types, and which are ``computed`` by the record; its facets."""

    names: tuple[str, ...]
    kept: tuple[tuple[str, Callable[[Any], Any]], ...]
    computed: tuple[str, ...]
    facets: tuple[tuple[str, type, int, int, bool], ...]


@by_type
def _making(record: Any) -> _Making:
    kinds = {name: _plain(hint) for name, hint in _hints(record).items()}
    own = {name: get_origin(kind) or kind for name, (kind, _) in kinds.items()}
    own = {name: kind for name, kind in own.items() if not is_dataclass(kind)}
    place, facets = len(own), []
    for name, (kind, is_optional) in kinds.items():
        if name not in own:
            size = len(names_of(kind))
            facets.append((name, kind, place, place + size, is_optional))
            place += size
    kept = [(name, kind) for name, kind in own.items() if issubclass(kind, Enum | tuple)]
    computed = [each.name for each in fields(record) if not each.init and each.name in own]
    return _Making((*own,), (*kept,), (*computed,), (*facets,))


def always(record: Any) -> bool:
    """Return True: a text of any record may quote a user."""
    return True


def without_words(record: Facet) -> Facet:
    """Drop the texts that may quote a user."""
    dropped: dict[str, None] = {}
    for name, may_quote in _words(type(record)):
        if getattr(record, name) is not None and may_quote(record):
            dropped[name] = None
    return replace(record, **dropped) if dropped else record


Read = Callable[[Any], tuple[Any, ...]]


class _Layout(NamedTuple):
    """The columns of a record and their readers: its own, then those of its facets, each with the
    values of a missing facet."""

    names: tuple[str, ...]
    own: Read
    facets: tuple[tuple[str, Read, tuple[None, ...]], ...]


@by_type
def _layout(record: Any) -> _Layout:
    kinds = {name: _plain(hint)[0] for name, hint in _hints(record).items()}
    facets = {name: list(_hints(kind)) for name, kind in kinds.items() if is_dataclass(kind)}
    own = [name for name in kinds if name not in facets]
    return _Layout(
        (*own, *chain.from_iterable(facets.values())),
        attrgetter(*own),
        tuple((name, attrgetter(*each), (None,) * len(each)) for name, each in facets.items()),
    )


@by_type
def _hints(record: Any) -> dict[str, Any]:
    hints = get_type_hints(record)
    return {each.name: hints[each.name] for each in fields(record)}


@by_type
def _words(record: Any) -> list[tuple[str, Callable[[Any], bool]]]:
    declared = [(each.name, each.column.words) for each in columns_of(record)]
    return [(name, words) for name, words in declared if words is not None]


def _plain(hint: Any) -> tuple[Any, bool]:
    """Return the type of the values, and whether None is allowed."""
    is_optional = isinstance(hint, UnionType)
    if is_optional:
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    return hint, is_optional
