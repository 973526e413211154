"""Requests as label sources see them."""

from datetime import UTC, datetime

from litellm_messplus.labels.source import Asked
from litellm_messplus.prediction.encoder import Conversation, Turn


def asked(*texts: str) -> Asked:
    """A conversation of these turns, the user's first."""
    turns = tuple(
        Turn("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)
    )
    return Asked(
        request_id="r1",
        zoo="tiny-zoo-judged",
        service_level="default",
        asked_at=datetime(2026, 1, 1, tzinfo=UTC),
        key_hash=None,
        user=None,
        conversation=Conversation(turns),
        parameters={},
        metadata={},
    )
