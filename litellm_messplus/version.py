"""Which version is installed."""

from importlib import metadata

PACKAGE = "litellm-messplus"


def version() -> str:
    """As its package says it."""
    return metadata.version(PACKAGE)
