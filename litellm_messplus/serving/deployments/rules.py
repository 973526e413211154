"""Rules before the choice, by metadata, key, team or tags, and limits that a request was granted.

Both are gates: the candidates that they leave out are ranked last, and the policy decides among the
others.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from litellm_messplus.deciding.decider import Engine
from litellm_messplus.deciding.question import Question
from litellm_messplus.routing.held import within
from litellm_messplus.routing.limits import LATE_SHARE
from litellm_messplus.runtime.counters import Counters
from litellm_messplus.runtime.errors import RefusedError
from litellm_messplus.serving.surfaces.request import IncomingRequest
from litellm_messplus.settings.schema import DEADLINE, MAX_COST
from litellm_messplus.settings.serving import KEY, METADATA, TAGS, TEAM, RuleSettings, text_of
from litellm_messplus.settings.zoo import Zoo


def rule_of(zoo: Zoo, request: IncomingRequest) -> RuleSettings | None:
    """Return the first rule of the zoo whose conditions all hold; None if there is none."""
    rules = zoo.settings.first
    return next((each for each in rules if _holds(each, request)), None) if rules else None


def _holds(rule: RuleSettings, request: IncomingRequest) -> bool:
    return all(
        any(each in wanted for each in _values_of(name, request))
        for name, wanted in rule.when.items()
    )


def _values_of(name: str, request: IncomingRequest) -> Iterator[str]:
    """Yield the values that a request has for the name of a condition, as text."""
    own: Mapping[str, Any] = request.metadata
    if name == KEY:
        found: Any = request.key_hash, own.get("user_api_key_alias")
    elif name == TEAM:
        found = request.team_id, own.get("user_api_key_team_alias")
    elif name == TAGS:
        found = own.get("tags")
    else:
        found = (request.client_metadata.get(name.removeprefix(METADATA)),)
    for each in found if isinstance(found, list | tuple) else ():
        if isinstance(each, str | int | float):
            yield text_of(each)


# The limits that a request asked for and was granted: what it may cost, how long it may take.


def kept_within(
    engine: Engine, question: Question, limits: Mapping[str, float], counters: Counters
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the candidates that are expected to keep the limits, by name, and which of them others
    would exceed. If none keeps one, the nearest does, and that is counted.

    Raises RefusedError if the zoo refuses requests whose limits no candidate keeps.
    """
    kept, why = question.candidates, list[str]()
    if not limits:
        return kept, ()
    for name, expected in _expected(engine, question, limits).items():
        own, most = {candidate: expected[candidate] for candidate in kept}, limits[name]
        if min(own.values()) > most:
            counters.add("asked_unmet")
            if engine.zoo.settings.unmet == "refuse":
                raise RefusedError(f"{name}: given {most:g}; no model is expected to keep it")
        able = within(own, most)
        if len(able) < len(kept):
            kept, why = tuple(each for each in kept if each in able), [*why, name]
    return kept, tuple(why)


def _expected(
    engine: Engine, question: Question, limits: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Return what is expected of each candidate, by limit: its cost, or the seconds that few of its
    calls exceed."""
    everyone, durations = engine.situation(question).everyone, engine.state.durations
    found = {
        DEADLINE: {
            each.candidate: durations[each.candidate].tail(each.length, LATE_SHARE)
            for each in everyone
        },
        MAX_COST: {each.candidate: each.cost for each in everyone},
    }
    return {name: found[name] for name in found if name in limits}
