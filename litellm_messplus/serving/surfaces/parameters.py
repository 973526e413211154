"""Parameters of a call that change what its answer costs or is worth: of an arm, and of a request.

A candidate is a model with these parameters, as the deployment sets them. In LiteLLM, what a
request sets itself wins; an arm that sets something else would not answer as it is known to.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

PLAIN = re.compile(r"[\w.:-]{1,24}")
"""Text that is shown as it is. Any other may be long, secret, or more than a name can hold."""
LONGEST = 100
"""Most characters of an arm's words; longer ones are shown as a digest."""
INNER = "chat_template_kwargs."
"""Part of a path in `extra_body` that is left out, as what is below it says the same."""


def _shown(value: Any) -> str:
    """Write a value: numbers, switches and short names as they are, anything else as a digest."""
    plain = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    if PLAIN.fullmatch(plain):
        return plain
    return f"#{blake2b(plain.encode('utf-8', 'replace'), digest_size=4).hexdigest()}"


def _effort(value: Any) -> str:
    found = value.get("effort") if isinstance(value, Mapping) else value
    return "no reasoning" if found in (None, "none") else f"{_shown(found)} effort"


def _thinking(value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"thinking {_shown(value)}"
    if value.get("type") == "disabled":
        return "no reasoning"
    budget = value.get("budget_tokens")
    return "adaptive thinking" if budget is None else f"thinking up to {_shown(budget)} tokens"


def _limit(value: Any) -> str:
    return f"at most {_shown(value)} tokens"


def _body(value: Any) -> str:
    return ", ".join(f"{path.removeprefix(INNER)} {text}" for path, text in _leaves(value))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if not isinstance(value, Mapping):
        yield path or "extra_body", _shown(value)
        return
    for name in sorted(value, key=str):
        yield from _leaves(value[name], f"{path}.{name}" if path else str(name))


class Parameter(NamedTuple):
    """A parameter: the ``aspect`` of the answer that it sets, which others may set too, and the
    words for a value."""

    aspect: str
    words: Callable[[Any], str]


LIMIT = "length"
PARAMETERS: Mapping[str, Parameter] = {
    "reasoning_effort": Parameter("reasoning", _effort),
    "reasoning": Parameter("reasoning", _effort),
    "thinking": Parameter("reasoning", _thinking),
    "verbosity": Parameter("verbosity", lambda value: f"{_shown(value)} verbosity"),
    "service_tier": Parameter("tier", lambda value: f"{_shown(value)} tier"),
    "max_tokens": Parameter(LIMIT, _limit),
    "max_completion_tokens": Parameter(LIMIT, _limit),
    "max_output_tokens": Parameter(LIMIT, _limit),
    "extra_body": Parameter("body", _body),
    "prompt_id": Parameter("prompt", lambda value: f"prompt {_shown(value)}"),
    "prompt_variables": Parameter("variables", lambda value: f"variables {_shown(value)}"),
}
"""The parameters that make arms, in the order in which their words are shown."""
Values = Mapping[str, Any]
"""Values of such parameters, by name."""


def read_parameters(given: Mapping[str, Any]) -> Values:
    """Take those that are set from the arguments of a deployment or of a request."""
    if PARAMETERS.keys().isdisjoint(given):
        return {}
    found = {name: given.get(name) for name in PARAMETERS}
    return {name: value for name, value in found.items() if value not in (None, "", {})}


def arm_name(model: str, own: Values) -> str:
    """Name the arm: the model, and what it sets, in words that a person reads."""
    words = ", ".join(dict.fromkeys(PARAMETERS[name].words(value) for name, value in own.items()))
    if len(words) > LONGEST:
        words = f"settings {_shown(words)}"
    return f"{model}, {words}" if words else model


def contradicted(own: Values, requested: Values) -> Iterator[str]:
    """Yield the parameters of a request that an arm contradicts: it sets the same aspect in other
    words, or a lower limit. A request with a lower limit than the arm's only shortens its answer.
    """
    for name, value in requested.items():
        aspect, words = PARAMETERS[name]
        same = [each for each in own if PARAMETERS[each].aspect == aspect]
        if aspect == LIMIT:
            limits = [own[each] for each in same if _is_count(own[each])]
            if _is_count(value) and limits and min(limits) < value:
                yield name
        elif same and words(value) not in {PARAMETERS[each].words(own[each]) for each in same}:
            yield name


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Values of `reasoning_effort`, the least first."""
Effort = tuple[float, float, float]


def effort(own: Values) -> Effort:
    """Rank an arm among those of its model: by effort (medium if none is set), tokens of thinking,
    and the longest answer."""
    level, thinking = own.get("reasoning_effort", own.get("reasoning")), own.get("thinking")
    level = level.get("effort") if isinstance(level, Mapping) else level
    place = EFFORTS.index(level) if level in EFFORTS else EFFORTS.index("medium")
    budget = thinking.get("budget_tokens") if isinstance(thinking, Mapping) else None
    limits = [own[name] for name in own if PARAMETERS[name].aspect == LIMIT]
    longest = [limit for limit in limits if _is_count(limit)]
    return (
        float(place),
        float(budget) if _is_count(budget) and budget is not None else 0.0,
        float(min(longest, default=2**31)),
    )
