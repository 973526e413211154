"""A property computed at its first use, as `functools.cached_property` does without its lock, which
Python 3.12 dropped: the lock took three times as long as most of what is computed."""

from collections.abc import Callable
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
