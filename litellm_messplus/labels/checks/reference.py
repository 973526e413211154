"""Does the answer match the reference that the request brought along?"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictFloat, StrictInt, StrictStr, ValidationError

from litellm_messplus.labels.checks.check import Score
from litellm_messplus.labels.checks.sandbox import Sandbox
from litellm_messplus.labels.source import AnsweredCall
from litellm_messplus.runtime import Counters
from litellm_messplus.settings.promise import NotNegative, Settings

METADATA_KEY = "messplus_reference"
Words = Annotated[StrictStr, Field(min_length=1)]


class MalformedReferenceError(Exception):
    """A fault of a reference, described without a word of it."""


class TextReference(Settings):
    """The answer itself, or a pattern that is found in it."""

    match: Literal["exact", "normalised", "regex"]
    value: Words

    def spelled(self) -> dict[str, str]:
        """Return it as `worker.matches` reads it."""
        return self.model_dump()


class Tolerance(Settings):
    """The distance that a number may be off: so much, or such a share of the reference."""

    absolute: NotNegative = 0.0
    relative: NotNegative = 0.0


class NumericReference(Settings):
    """The last number of the answer."""

    match: Literal["numeric"]
    value: StrictInt | StrictFloat
    tolerance: NotNegative | Tolerance = 0.0

    def spelled(self) -> dict[str, str]:
        """Return it as `worker.matches` reads it."""
        given = self.tolerance
        tolerance = given if isinstance(given, Tolerance) else Tolerance(absolute=given)
        number = {"value": self.value, **tolerance.model_dump()}
        return {"match": self.match, **{name: str(found) for name, found in number.items()}}


Reference = TextReference | NumericReference
KINDS: dict[Any, type[Reference]] = {
    "exact": TextReference,
    "normalised": TextReference,
    "regex": TextReference,
    "numeric": NumericReference,
}


class ReferenceCheck:
    """A comparison with the request's reference: satisfactory if it matches, unsatisfactory if not,
    silent without a reference."""

    name = "reference"

    def __init__(self, sandbox: Sandbox, counters: Counters) -> None:
        self._sandbox = sandbox
        self._counters = counters

    async def check(self, call: AnsweredCall) -> Score | None:
        given = call.asked.metadata.get(METADATA_KEY)
        if given is None or call.answer is None:
            return None
        try:
            return await self._score(read_reference(given), call.answer.text)
        except MalformedReferenceError as error:
            self._counters.failure("references_malformed", f"a reference was malformed: {error}")
            return None

    async def _score(self, reference: Reference, text: str) -> Score:
        found = await self._sandbox.run("matches", reference.spelled(), text)
        if found is None:
            raise MalformedReferenceError(f"its value is none that {reference.match} can match")
        return Score(1.0) if found else Score(0.0, f"no {reference.match} match")


def read_reference(given: object) -> Reference:
    """Read a reference; a text alone is one to be matched normalised. Raises
    MalformedReferenceError."""
    if isinstance(given, str):
        given = {"match": "normalised", "value": given}
    if not isinstance(given, Mapping):
        raise MalformedReferenceError("it is neither a text nor an object")
    kind = given.get("match")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise MalformedReferenceError(f"match is none of {', '.join(KINDS)}")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        raise MalformedReferenceError("; ".join(map(_problem, problems))) from None


def _problem(found: Mapping[str, Any]) -> str:
    if found["type"] == "extra_forbidden":  # whose place is a word of the client's
        return "it has a key that is not known"
    return f"{found['loc'][0]}: {found['msg']}"
