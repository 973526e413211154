"""A failed request is unsatisfied where a promise says so, and gets no label anywhere else."""

import pytest
from fastapi import HTTPException
from litellm.exceptions import InternalServerError, Timeout
from litellm.types.router import RouterRateLimitError

from litellm_messplus.labels.checks.source import Failures
from litellm_messplus.labels.source import Finding
from litellm_messplus.runtime.vocabulary import FAILED, SERVING, Failure, LabelKind
from litellm_messplus.serving.ends import who_failed
from litellm_messplus.settings.schema import ZooSettings
from tests.support.checking import ended

NO_DEPLOYMENT = RouterRateLimitError(
    model="zoo", cooldown_time=1.0, enable_pre_call_checks=False, cooldown_list=[]
)


class RefusedError(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (InternalServerError("down", "openai", "small"), Failure.UPSTREAM),
        (RefusedError(499), Failure.UPSTREAM),
        (RefusedError(429), Failure.UPSTREAM),
        (ValueError("nonsense"), Failure.UPSTREAM),
        (Timeout("too late", "small", "openai"), Failure.DEADLINE),
        (TimeoutError(), Failure.DEADLINE),
        (NO_DEPLOYMENT, Failure.NO_DEPLOYMENT),
        (HTTPException(499, "hung up"), Failure.CLIENT_GONE),
        (RefusedError(400), Failure.REFUSED),
        (RefusedError(413), Failure.REFUSED),
        (RefusedError(422), Failure.REFUSED),
    ],
)
def test_the_error_tells_who_failed(error: Exception, failure: Failure) -> None:
    assert who_failed(error) is failure


def test_a_model_that_failed_before_none_was_left_is_who_failed() -> None:
    assert who_failed(NO_DEPLOYMENT, is_called=True) is Failure.UPSTREAM


def found(
    failure: Failure | None, *, level: str = "default", is_served: bool = True
) -> list[Finding]:
    told: list[Finding] = []
    answer = "fine" if failure is None else None
    Failures([level], told.append).ended(ended(answer, is_served=is_served, failure=failure))
    return told


@pytest.mark.parametrize("failure", SERVING)
def test_a_failure_of_those_who_serve_is_unsatisfied(failure: Failure) -> None:
    (finding,) = found(failure)

    assert (finding.kind, finding.source) == (LabelKind.CHECK, FAILED)
    assert (finding.value, finding.weight) == (0.0, 1.0)
    assert finding.cause is not None, "a client may set a timeout that no model keeps"
    assert finding.comment == f"no answer: {failure}"


def test_nothing_else_is() -> None:
    for failure in set(Failure) - set(SERVING):
        assert found(failure) == []
    assert found(None) == []
    assert found(Failure.UPSTREAM, level="gold") == []
    assert found(Failure.UPSTREAM, is_served=False) == []


def test_a_level_may_count_what_its_zoo_does_not() -> None:
    zoo = ZooSettings.model_validate(
        {"alpha": 0.8, "service_levels": {"gold": {"failures": "count"}, "plain": {}}}
    )

    assert [zoo.level(name).failures for name in ("default", "gold", "plain")] == [
        "apart",
        "count",
        "apart",
    ]
    with pytest.raises(ValueError, match="with `failures: count`"):
        ZooSettings.model_validate(
            {"alpha": 0.8, "failures": "count", "labels": {"precedence": ["feedback"]}}
        )
