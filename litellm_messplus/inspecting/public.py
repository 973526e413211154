"""What is told of one request: by the route, and by an explanation.

Every field is named here. A column that is added to a table stays inside until it is added here
too: features and surface would let others test guesses of the prompt, the hash of a key is nobody
else's, and a position means nothing outside of the log.
"""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel
from sqlalchemy import RowMapping

from litellm_messplus.store.history import History


class PublicRow(BaseModel):
    """The public columns of a row; `docs/sql.md` says what each of them means."""

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """Take the row without what is not public."""
        return cls.model_validate({name: row[name] for name in cls.model_fields})


class PublicCall(PublicRow):
    """The public columns of a row of `calls`."""

    call_id: str
    request_id: str
    ended_at: datetime
    role: str
    status: str
    candidate: str | None
    deployment_id: str | None
    model: str | None
    response_id: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    written_tokens: int | None
    reasoning_tokens: int | None
    cost: float | None
    cost_source: str
    seconds: float | None
    is_cache_hit: bool
    error: str | None
    failure: str | None
    answer: str | None


class PublicLabel(PublicRow):
    """The public columns of a row of `labels`."""

    label_id: str
    call_id: str
    request_id: str
    created_at: datetime
    kind: str
    source: str
    value: float
    weight: float
    comment: str | None
    probability: float | None


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


class PublicRequest(PublicRow):
    """The public columns of a row of `requests`."""

    request_id: str
    created_at: datetime
    zoo: str
    service_level: str
    t: int
    alpha: float
    policy: str
    litellm_call_id: str
    team_id: str | None
    call_type: str
    is_stream: bool
    encoder: str
    prompt_characters: int
    estimated_cost: dict[str, float]
    estimated_satisfaction: dict[str, float]
    estimated_cost_largest: float | None
    queue: float
    chosen: str
    largest: str
    is_exploration: bool
    exploration_probability: float
    reason: str
    is_within_reach: bool
    label_probability: float | None
    decision_seconds: float
    prompt: str | None
    aim: float | None
    expected_satisfaction: float | None
    price: float | None
    propensity: float | None
    exploration_calls: int
    encode_seconds: float | None
    encode_joules: float | None
    surface_version: str | None
    expected_t: int | None
    eligible: list[str] | None
    gated_by: list[str] | None
    arm: str
    would_choose: str | None
    would_cost: float | None
    sample_probability: float | None
    key_alias: str | None
    user_id: str | None
    end_user: str | None
    tags: list[str] | None
    conversation: str | None
    line: str | None
    turn: int | None
    hold: str | None
    limits: dict[str, Any] | None
    counted_with: str | None


class PublicHistory(PublicRequest):
    """A request with all that was logged about it: what `GET /messplus/requests/{id}` answers."""

    outcome: PublicOutcome
    calls: list[PublicCall]
    labels: list[PublicLabel]

    @classmethod
    def of_history(cls, found: History) -> Self:
        """Take what is public of the rows."""
        return cls(
            **PublicRequest.of(found.request).model_dump(),
            outcome=PublicOutcome.of(found.outcome),
            calls=[PublicCall.of(call) for call in found.calls],
            labels=[PublicLabel.of(label) for label in found.labels],
        )
