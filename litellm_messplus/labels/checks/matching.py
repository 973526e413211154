"""Does a text match a reference? Run in the worker, for a pattern can be made to take for ever."""

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Mapping
from decimal import Context, Decimal

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
"""A sign, a whole part with or without thousands separators, decimals, an exponent."""
ARITHMETIC = Context(prec=60, traps=[])
"""What overflows is not finite, rather than an error."""


def matches(reference: Reference, text: str) -> bool | None:
    """By a `reference.Reference`, every value of which is a text here. None where its pattern is no
    pattern, or where of its words nothing is left to compare."""
    return MATCHES[reference["match"]](reference, text)


def normalised(text: str) -> str:
    """Without regard to case, spaces, punctuation and Unicode form.

    Dashes separate words as spaces do. A number keeps its sign, its decimals and what stands
    between its digits, so that -1.5 is not 15.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    straight = folded.replace("\u2212", "-")
    kept = (_kept(straight, index) for index in range(len(straight)))
    return " ".join("".join(kept).split())


def last_number(text: str) -> Decimal | None:
    """The last number of a text; None where there is none. A comma separates thousands."""
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


def _is_same(reference: Reference, text: str) -> bool:
    return text == reference["value"]


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
    "exact": _is_same,
    "normalised": _is_alike,
    "numeric": _is_near,
    "regex": _is_found,
}
