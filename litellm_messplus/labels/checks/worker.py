"""The process of the sandbox: `python -m litellm_messplus.labels.checks.worker`.

A line on stdin is a task, `[function, CPU seconds, arguments]`; a line on stdout is its result,
`[true, result]` or `[false, error]`. The first line reports that it is ready."""

import json
import re
import signal
import sys
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, NoReturn

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

# Whether a text fits a JSON schema. Run in the worker: either can be made to take forever.

Document = tuple[str, str, Any]
"""A readable description, the text, and the schema that it must fit."""

NOWHERE: Registry[Any] = Registry()
"""Registry without schemas, so that no client's `$ref` makes us fetch anything."""


def misfit(documents: Sequence[Document]) -> str | None:
    """Describe the fault of the first text that does not fit, by a keyword of JSON schema and
    without quoting it. None if all fit, or if a schema is invalid."""
    for what, text, schema in documents:
        try:
            document = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return f"{what} cannot be read as JSON"
        keyword = _broken_keyword(document, schema)
        if keyword is not None:
            return f"{what} does not fit the JSON schema ({keyword})"
    return None


def _broken_keyword(document: object, schema: object) -> str | None:
    """Return the violated keyword. A schema that cannot be followed (invalid, or with external
    references) is never violated."""
    if not isinstance(schema, dict | bool):
        return None
    validator_class = validator_for(schema, default=Draft202012Validator)
    try:
        validator_class.check_schema(schema)
        validator = validator_class(schema, registry=NOWHERE)
        error: ValidationError | None = next(validator.iter_errors(document), None)
    except (SchemaError, Unresolvable, re.error, RecursionError):
        return None
    return None if error is None else str(error.validator)


def _refuse(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(constant)


# Whether a text matches a reference. Run in the worker: a pattern can be made to take forever.

Reference = Mapping[str, str]
NUMBER = re.compile(
    r"""
    (?<!\w)(?<!\d\.)                       # not within a word, nor after a decimal point
    (?P<sign>[-+\u2212]?) [$\u20ac\u00a3]?
    (?P<whole>\d{1,3}(?:[,_'\u2019\u00a0\u2009\u202f]\d{3})+(?!\d)|\d+)?
    (?P<rest>(?(whole)(?:\.\d+)?|(?<!\.)\.\d+) (?:[eE][-+\u2212]?\d+(?!\w))?)
    """,
    re.VERBOSE,
)
"""Pattern of a sign, a whole part with or without thousands separators, decimals, an exponent."""
ARITHMETIC = Context(prec=60, traps=[])
"""Decimal context in which an overflow is not finite, rather than an error."""


def matches(reference: Reference, text: str) -> bool | None:
    """Match a text by a `shipped.Reference`, every value of which is a text here. None if its
    pattern is invalid, or if normalising leaves nothing to compare."""
    return MATCHES[reference["match"]](reference, text)


def normalised(text: str) -> str:
    """Normalise a text: ignore case, spaces, punctuation and Unicode form.

    Dashes separate words as spaces do. A number keeps its sign, its decimals and the separators
    between its digits, so that -1.5 is not 15.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    straight = folded.replace("\u2212", "-")
    kept = (_kept(straight, index) for index in range(len(straight)))
    return " ".join("".join(kept).split())


def last_number(text: str) -> Decimal | None:
    """Return the last number of a text; None without any. A comma separates thousands."""
    found = next(iter(deque(NUMBER.finditer(text), maxlen=1)), None)
    if found is None:
        return None
    sign = "-" if found["sign"] in ("-", "\u2212") else ""
    whole = re.sub(r"\D", "", found["whole"] or "0")
    return ARITHMETIC.create_decimal(f"{sign}{whole}{found['rest']}".replace("\u2212", "-"))


def _kept(text: str, index: int) -> str:
    character = text[index]
    category = unicodedata.category(character)
    if category[0] != "P":
        return character
    before = text[index - 1] if index else " "
    after = text[index + 1 : index + 2]
    if after.isdigit():
        is_inside = before.isdigit() and character in ".,:/"
        begins = character in "-." and not before.isalnum()
        if is_inside or begins:
            return character
    return " " if category == "Pd" else ""


def _is_alike(reference: Reference, text: str) -> bool | None:
    value = normalised(reference["value"])
    return normalised(text) == value if value else None


def _is_near(reference: Reference, text: str) -> bool:
    found, value = last_number(text), Decimal(reference["value"])
    if found is None or not found.is_finite():
        return False
    relative = ARITHMETIC.multiply(Decimal(reference["relative"]), value.copy_abs())
    tolerance = max(Decimal(reference["absolute"]), relative)
    return ARITHMETIC.subtract(found, value).copy_abs() <= tolerance


def _is_found(reference: Reference, text: str) -> bool | None:
    try:
        return re.search(reference["value"], text) is not None
    except (re.error, OverflowError, RecursionError):
        return None


MATCHES: dict[str, Callable[[Reference, str], bool | None]] = {
    "exact": lambda reference, text: text == reference["value"],
    "normalised": _is_alike,
    "numeric": _is_near,
    "regex": _is_found,
}


FUNCTIONS: dict[str, Callable[..., object]] = {"misfit": misfit, "matches": matches}


def main() -> None:
    """Serve until stdin ends, as it does with the proxy."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the proxy's, which then ends us
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # ends the process: nothing else stops a pattern
    _say(True, "ready")
    for line in sys.stdin:
        function, seconds, arguments = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            _say(True, FUNCTIONS[function](*arguments))
        except Exception as error:  # an unforeseen one of a library: named, not quoted
            _say(False, type(error).__name__)
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _say(succeeded: bool, result: object) -> None:
    print(json.dumps([succeeded, result]), flush=True)


if __name__ == "__main__":
    main()
