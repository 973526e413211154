"""Faster stand-ins for `functools.cached_property` and `dataclasses.replace`, for every request: a
lock, which Python 3.12 dropped, took three times as long as most of what is computed, and a copy
takes a fifth of the time."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar, overload

Found = TypeVar("Found")


class once(Generic[Found]):  # noqa: N801 -- a decorator
    """A property whose value is kept in the object's dictionary, which hides it from then on."""

    def __init__(self, compute: Callable[[Any], Found]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, found: None, owner: type) -> "once[Found]": ...
    @overload
    def __get__(self, found: object, owner: type) -> Found: ...
    def __get__(self, found: object, owner: type) -> "once[Found] | Found":
        if found is None:
            return self
        value = found.__dict__[self._name] = self._compute(found)
        return value


def replace(found: Found, **changes: Any) -> Found:
    """Copy an object of a dataclass of two or more fields, with the changes."""
    kind: Any = found.__class__
    names, read = _given(kind)
    copied: Found = kind(**(dict(zip(names, read(found), strict=True)) | changes))
    return copied


@cache
def _given(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Return the names of the fields that the class is made of, and their reader."""
    names = tuple(each.name for each in fields(kind) if each.init)
    return names, attrgetter(*names)
