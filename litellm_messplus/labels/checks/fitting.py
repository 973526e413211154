"""Does a text fit a JSON schema? Run in the worker: either can be made to take for ever."""

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

Document = tuple[str, str, Any]
"""What it is, for people; the text; the schema that it must fit."""

NOWHERE: Registry[Any] = Registry()
"""Knows no other schemas, so that no `$ref` of a client's makes us fetch anything."""


def misfit(documents: Sequence[Document]) -> str | None:
    """What the first text that does not fit does wrong, by a keyword of JSON schema and without a
    word of it. None where all fit, or where a schema is none, so that nobody can say."""
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
    """A schema that cannot be followed (not valid, or refers elsewhere) breaks nothing."""
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
    """NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(constant)
