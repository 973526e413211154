"""Whether a text fits a client's JSON schema, within limits: clients' schemas and patterns can be
made to take forever."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any, NoReturn

import regex
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft202012Validator, extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from litellm_messplus.labels.checks.check import CheckTimeoutError

Document = tuple[str, str, Any]
"""A readable description, the text, and the schema that it must fit."""

SECONDS = 2.0
"""Most seconds of computing for one answer: a well-meant schema takes milliseconds. Whether it is
valid takes up to one more, which its size limits."""
VALUES = 2_000
"""Most values within a schema."""
ITEMS = 1_000
"""Most items of a list in a schema, and of a list whose items must differ."""
DEPTH = 64
"""Most levels of a schema."""
PATTERN_LENGTH, SEARCHED_LENGTH = 1_000, 10_000
"""Most characters of a pattern, and of a text in which one is searched."""

NOWHERE: Registry[Any] = Registry()
"""Registry without schemas, so that no client's `$ref` makes us fetch anything."""


class _NotFollowedError(Exception):
    """Error of a schema that is too large, or that refers to another document."""


def misfit(documents: Sequence[Document], seconds: float = SECONDS) -> str | None:
    """Describe the fault of the first text that does not fit, by a keyword of JSON schema and
    without quoting it. None if all fit, or if a schema cannot be followed: invalid, too large, or
    with external references. Raises CheckTimeoutError."""
    _until.set(time.thread_time() + seconds)
    for what, text, schema in documents:
        try:
            document = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return f"{what} cannot be read as JSON"
        try:
            keyword = _broken_keyword(document, schema)
        except (_NotFollowedError, SchemaError, Unresolvable, regex.error, RecursionError):
            continue
        if keyword is not None:
            return f"{what} does not fit the JSON schema ({keyword})"
    return None


def _refuse(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(constant)


def _broken_keyword(document: object, schema: object) -> str | None:
    """Return the violated keyword."""
    if not isinstance(schema, dict | bool):
        return None
    _seconds_left()
    _check_size(schema)
    dialect = validator_for(schema, default=Draft202012Validator)
    dialect.check_schema(schema, format_checker=None)
    if isinstance(schema, dict):  # whose `$schema` would bring the dialect's own class back
        schema = {name: value for name, value in schema.items() if name != "$schema"}
    error = next(_limited(dialect)(schema, registry=NOWHERE).iter_errors(document), None)
    return None if error is None else str(error.validator)


def _check_size(schema: object) -> None:
    """Raise _NotFollowedError for a schema that is too large, or with what the keywords below do
    not limit."""
    names: set[str] = set()
    for count, value in enumerate(_values(schema)):
        if count >= VALUES or (isinstance(value, list) and len(value) > ITEMS):
            raise _NotFollowedError
        if isinstance(value, dict):
            names.update(value)
            is_outside = not _text(value, "$ref", "#").startswith("#")
            if is_outside or (value is not schema and _text(value, "$schema", "")):
                raise _NotFollowedError
    if {"patternProperties", "unevaluatedProperties"} <= names:
        raise _NotFollowedError


def _values(schema: object, depth: int = 0) -> Iterator[object]:
    """Yield a schema and all values within it."""
    if depth > DEPTH:
        raise _NotFollowedError
    yield schema
    if isinstance(schema, dict | list):
        for value in schema.values() if isinstance(schema, dict) else schema:
            yield from _values(value, depth + 1)


def _text(schema: Mapping[str, Any], name: str, missing: str) -> str:
    found = schema.get(name)
    return found if isinstance(found, str) else missing


# The keywords of a dialect, each within the time that is left.

_until: ContextVar[float] = ContextVar("_until")
"""The CPU time of this thread at which the check of an answer must end."""

DIFFERENT = Draft202012Validator.VALIDATORS["uniqueItems"]
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]


@cache
def _limited(dialect: Any) -> Any:
    """Return a dialect's class of validators, limited."""
    return extend(dialect, {name: _timed(each) for name, each in dialect.VALIDATORS.items()} | OWN)


def _timed(keyword: Keyword) -> Keyword:
    def follow(validator: Any, wanted: Any, found: Any, schema: Any) -> Iterator[ValidationError]:
        _seconds_left()
        yield from keyword(validator, wanted, found, schema) or ()

    return follow


def _seconds_left() -> float:
    left = _until.get() - time.thread_time()
    if left <= 0.0:
        raise CheckTimeoutError("a schema takes too long")
    return left


def _is_found(pattern: str, text: str) -> bool:
    seconds = _seconds_left()
    if len(pattern) > PATTERN_LENGTH or len(text) > SEARCHED_LENGTH:
        raise _NotFollowedError
    try:
        return regex.search(pattern, text, timeout=seconds, concurrent=True) is not None
    except TimeoutError:
        raise CheckTimeoutError("a pattern takes too long") from None


def _pattern(validator: Any, wanted: str, found: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(found, str) and not _is_found(wanted, found):
        yield ValidationError("")


def _pattern_properties(
    validator: Any, wanted: Mapping[str, Any], found: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(found, dict):
        for pattern, below in wanted.items():
            for name, value in found.items():
                if _is_found(pattern, name):
                    yield from validator.descend(value, below)


def _additional_properties(
    validator: Any, wanted: Any, found: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(found, dict):
        return
    properties, patterns = schema.get("properties", ()), schema.get("patternProperties", ())
    for name, value in found.items():
        if name in properties or any(_is_found(pattern, name) for pattern in patterns):
            continue
        if wanted is False:
            yield ValidationError("")
        else:
            yield from validator.descend(value, wanted)


def _unique_items(
    validator: Any, wanted: Any, found: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(found, list) and len(found) > ITEMS:
        raise _NotFollowedError
    yield from DIFFERENT(validator, wanted, found, schema) or ()


OWN = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
