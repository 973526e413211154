"""How alike two texts are: whether a question is another one asked again."""

TRIGRAM = 3
LONGEST = 4000
"""Characters that are compared; two questions that agree so far are the same."""


def likeness(one: str, other: str) -> float:
    """From 0 to 1: the share of character trigrams that two texts have in common (Dice), whatever
    their case and spacing."""
    mine, theirs = _trigrams(one), _trigrams(other)
    return 2 * len(mine & theirs) / (len(mine) + len(theirs))


def _trigrams(text: str) -> set[str]:
    words = " ".join(text[:LONGEST].casefold().split())
    padded = f"  {words}  "  # so that the shortest text has some
    return {padded[start : start + TRIGRAM] for start in range(len(padded) - TRIGRAM + 1)}
