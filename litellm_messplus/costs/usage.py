"""What one call used."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a call. ``cached_tokens`` are among those of the prompt, ``reasoning_tokens``
    among those of the completion. ``is_counted`` where the endpoint did not say, and we counted."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    is_counted: bool = False
