"""What is told of one request: by the route, and by an explanation.

A column is told where it is declared public. Features and surface would let others test guesses of
the prompt, the hash of a key is nobody else's, and a position means nothing outside of the log.
"""

from typing import Any, Self, get_args

from pydantic import BaseModel, create_model
from sqlalchemy import RowMapping

from litellm_messplus.records import CallRecord, LabelRecord, RequestRecord
from litellm_messplus.rows import Declared, columns_of
from litellm_messplus.store.history import History


class PublicRow(BaseModel):
    """The public columns of a row; `docs/sql.md` says what each of them means."""

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """Take the row without what is not public."""
        return cls.model_validate({name: row[name] for name in cls.model_fields})


def _model(name: str, table: str, record: type) -> type[PublicRow]:
    shown: dict[str, Any] = {
        each.name: (_kind(each), ...) for each in columns_of(record) if each.column.is_public
    }
    doc = f"The public columns of a row of `{table}`."
    return create_model(name, __base__=PublicRow, __doc__=doc, **shown)


def _kind(column: Declared) -> Any:
    """Return the type of a column as JSON has it."""
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
    """The public columns of a row of the view `request_outcomes`."""

    request_id: str
    served: str | None
    status: str | None
    satisfaction: float | None
    satisfaction_weight: float | None
    satisfaction_kind: str | None
    cost: float | None
    cost_largest: float | None
    is_measured: bool | None


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
    """Take what is public of the rows."""
    return PublicHistory(
        **PublicRequest.of(found.request).model_dump(),
        outcome=PublicOutcome.of(found.outcome),
        calls=[PublicCall.of(call) for call in found.calls],
        labels=[PublicLabel.of(label) for label in found.labels],
    )
