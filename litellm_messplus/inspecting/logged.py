"""The logged rows of one request, in the same form from a database and from a running proxy; and
the public part of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Self, get_args

from pydantic import BaseModel, create_model
from sqlalchemy import RowMapping, select
from sqlalchemy.ext.asyncio import AsyncEngine

from litellm_messplus.core.surface import VERSION
from litellm_messplus.core.verdict import counting
from litellm_messplus.records import CallRecord, LabelRecord, RequestRecord
from litellm_messplus.rows import Declared, columns_of
from litellm_messplus.runtime.errors import MessplusError
from litellm_messplus.store.history import History, find, history
from litellm_messplus.store.model_changes import ModelChange, logged_changes
from litellm_messplus.store.reading import reading
from litellm_messplus.store.rows import logged_surface
from litellm_messplus.store.tables import labels

# The public columns of a row, by their declaration. Features and surface would let others test
# guesses of the prompt, the hash of a key is private, and a position means nothing outside of the
# log.


class PublicRow(BaseModel):
    """The public columns of a row; `docs/tables.md` explains each of them."""

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """Take the public columns of the row."""
        return cls.model_validate({name: row[name] for name in cls.model_fields})


def _model(name: str, table: str, record: type) -> type[PublicRow]:
    shown: dict[str, Any] = {
        each.name: (_kind(each), ...) for each in columns_of(record) if each.column.is_public
    }
    doc = f"The public columns of a row of `{table}`."
    return create_model(name, __base__=PublicRow, __doc__=doc, **shown)


def _kind(column: Declared) -> Any:
    """Return the type of a column in JSON."""
    kind = column.kind
    if issubclass(column.base, str):
        kind = str
    elif column.base is tuple:
        kind = list[get_args(kind)[0]]  # type: ignore[misc]
    return kind | None if column.is_optional else kind


PublicRequest = _model("PublicRequest", "requests", RequestRecord)
PublicCall = _model("PublicCall", "calls", CallRecord)
PublicLabel = _model("PublicLabel", "labels", LabelRecord)


class PublicOutcome(PublicRow):
    """The public columns of a row of `outcomes`."""

    request_id: str
    served: str | None
    status: str | None
    satisfaction: float | None
    satisfaction_weight: float | None
    satisfaction_kind: str | None
    cost: float | None
    cost_largest: float | None


PublicHistory: type[BaseModel] = create_model(
    "PublicHistory",
    __base__=PublicRequest,
    __doc__="A request with all that was logged about it: what `GET /messplus/requests/{id}` "
    "answers.",
    outcome=(PublicOutcome, ...),
    calls=(list[PublicCall], ...),  # type: ignore[valid-type]
    labels=(list[PublicLabel], ...),  # type: ignore[valid-type]
)


def public_history(found: History) -> BaseModel:
    """Return the public part of the rows."""
    return PublicHistory(
        **PublicRequest.of(found.request).model_dump(),
        outcome=PublicOutcome.of(found.outcome),
        calls=[PublicCall.of(call) for call in found.calls],
        labels=[PublicLabel.of(label) for label in found.labels],
    )


# The logged rows of one request.


def plain(text: str | None, longest: int = 1000) -> str:
    """Keep printable characters, on one line: ids, comments and errors are free text of clients."""
    printable = "".join(each if each.isprintable() else " " for each in text or "")
    return printable if len(printable) <= longest else f"{printable[: longest - 3]}..."


Row = Mapping[str, Any]
NOT_SENT = "a proxy does not send the numbers of the prompt: ask the database for them"


class NotFoundError(MessplusError):
    """An id under which no request is known."""


class NotARequestError(MessplusError):
    """An answer that is not a logged request of this version."""


@dataclass(frozen=True, slots=True)
class Logged:
    """The rows of one request. ``counting`` holds the ids of the labels that count; only those of
    the served call if ``knows_unseen`` is false. ``surface`` is None for the reason in
    ``surface_note``. ``changes`` are of the candidates, where a database has the newest."""

    request: Row
    outcome: Row
    calls: Sequence[Row]
    labels: Sequence[Row]
    counting: frozenset[str]
    knows_unseen: bool
    surface: tuple[float, ...] | None
    surface_note: str | None
    changes: Sequence[ModelChange] = ()


async def logged_in(database: str, given: str) -> Logged:
    """Read the request of that id from the database at a URL, or the SQLite one at a path.

    Raises NotFoundError, and UnreadableDatabaseError if there is no database of this version.
    """
    async with reading(database) as engine:
        return await logged_from(engine, given)


async def logged_from(engine: AsyncEngine, given: str) -> Logged:
    """Read the request of that id from an open database. Raises NotFoundError."""
    found = await find(engine, given)
    rows = None if found is None else await history(engine, found.request_id)
    if rows is None:
        raise NotFoundError(
            f"ID: given {given!r}; allowed: the id of an answer, its x-litellm-call-id or "
            "x-messplus-request-id header, of a request in this database that is not pruned"
        )
    counting, changes = await _known(engine, rows.request)
    return _of_history(rows, counting, changes)


def logged_of(answer: Any) -> Logged:
    """Parse the request from the route's answer. Raises NotARequestError."""
    try:
        calls, labels, outcome = answer["calls"], answer["labels"], answer["outcome"]
        shapes = ((PublicRequest, [answer]), (PublicCall, calls), (PublicLabel, labels))
        for shape, rows in (*shapes, (PublicOutcome, [outcome])):
            for row in rows:
                _check(row, shape)
    except (TypeError, KeyError, AttributeError) as error:
        raise NotARequestError(f"the answer is not of this version: {error}") from error
    row = {name: answer[name] for name in PublicRequest.model_fields}
    counting = _counting_of_served(outcome, labels)
    return Logged(row, outcome, calls, labels, counting, False, None, NOT_SENT)


def _of_history(rows: History, counting: frozenset[str], changes: Sequence[ModelChange]) -> Logged:
    surface, note = _surface(rows.request)
    return Logged(
        request=_plain(rows.request, PublicRequest),
        outcome=_plain(rows.outcome, PublicOutcome),
        calls=[_plain(row, PublicCall) for row in rows.calls],
        labels=[_plain(row, PublicLabel) for row in rows.labels],
        counting=counting,
        knows_unseen=True,
        surface=surface,
        surface_note=note,
        changes=changes,
    )


def _plain(row: RowMapping, shape: type[PublicRow]) -> Row:
    """Return a row as the route shows it."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
        if name in shape.model_fields
    }


def _surface(request: RowMapping) -> tuple[tuple[float, ...] | None, str | None]:
    data, version = request["surface"], request["surface_version"]
    if data is None:
        return None, "no numbers of the prompt are logged"
    found = logged_surface(data, version)
    if found is None:
        return None, f"the numbers of the prompt are {version}, this version reads {VERSION}"
    return tuple(map(float, found)), None


async def _known(
    engine: AsyncEngine, request: RowMapping
) -> tuple[frozenset[str], Sequence[ModelChange]]:
    """Read the ids of the labels that count, and the changes of candidates from before the
    request."""
    is_own = labels.c.request_id == request["request_id"]
    query = select(labels.c.label_id).where(is_own, labels.c.counts)
    async with engine.connect() as connection:
        counting = frozenset((await connection.execute(query)).scalars())
        changes = await logged_changes(connection, request["zoo"])
    return counting, [
        each
        for each in changes
        if each.candidate in request["estimated_satisfaction"]
        and each.since <= request["created_at"]
    ]


def _counting_of_served(outcome: Row, labels: Sequence[Row]) -> frozenset[str]:
    """Find the label that the outcome comes from: by the rule, among those of its kind."""
    served, kind = f"{outcome['request_id']}.0", outcome["satisfaction_kind"]
    own = (SimpleNamespace(**label) for label in labels if label["call_id"] == served)
    found = None if kind is None else counting(own, (kind,))
    return frozenset() if found is None else frozenset({found.label_id})


def _check(row: Row, shape: type[PublicRow]) -> None:
    if missing := sorted(shape.model_fields.keys() - row.keys()):
        raise KeyError(", ".join(missing))
