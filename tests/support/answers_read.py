"""A zoo whose answers are read: refusals of its small model fail, and some of them are replaced."""

import asyncio
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from litellm_messplus.prediction.answer import Answer, read_answer
from litellm_messplus.prediction.encoder import Conversation
from litellm_messplus.prediction.head import Label
from litellm_messplus.prediction.predictor import Predictor, Seen
from litellm_messplus.prediction.prompt import Prompt
from litellm_messplus.prediction.surface import read_surface
from litellm_messplus.records import Record
from litellm_messplus.state import snapshot
from litellm_messplus.store import log, snapshots
from litellm_messplus.store.database import create_engine, migrate
from tests.support.builders import NOW, adaptive_of, label, replaced_call, request, served_call

GOOD = "The result is 42. Therefore the answer is 42."
REFUSED = "I cannot help with that, sorry."
READ, REPLACED = 40, 10
"""Requests whose first answer was read, and of them those whose answer was replaced."""


def teach(predictor: Predictor, names: list[str], lessons: int = 300) -> None:
    """Teach that refusals fail: a third of the answers of the first model, none of the others'."""
    prompt = Prompt(None, read_surface(Conversation.of_text("add 17 and 25")))
    for number in range(lessons if names else 0):
        name = names[number % len(names)]
        is_bad = name == names[0] and number // len(names) % 3 == 0
        answer = read_answer(Answer(REFUSED if is_bad else GOOD))
        predictor.read(name, prompt, answer)
        told = Label(float(not is_bad))
        predictor.learn(name, f"l{number}.0", f"l{number}", prompt, told, Seen(answer))


def logged(zoo: str, small: str, large: str, at: datetime = NOW, **of: Any) -> Iterator[Record]:
    """Yield requests that the small model answers for 1. One in four answers is a refusal, and the
    large model answers instead, for 10: of those the first failed, and nine in ten others not."""
    for number in range(READ):
        asked = f"read-{number}"
        yield request(asked, zoo=zoo, chosen=small, created_at=at, t=100_000 + number, **of)
        is_replaced = number % (READ // REPLACED) == 0
        said = {"prompt_said": 0.7, "answer_said": 0.15 if is_replaced else 0.85}
        own = {"candidate": small, "cost": 1.0, "ended_at": at, **said}
        if is_replaced:
            first = replaced_call(asked, **own)
            yield first
            yield served_call(asked, candidate=large, cost=10.0, ended_at=at)
            yield label(asked, 0.0, label_id=f"{asked}-first", call_id=first.call_id)
            yield label(asked, float(number % 10 != 0))
        else:
            yield served_call(asked, **own)
            yield label(asked, float(number % 10 != 9))


def add_to(url: str, engine: Any, names: list[str], records: list[Record]) -> None:
    """Write the records, and a snapshot of the engine, taught, into a database."""
    teach(adaptive_of(engine.state).predictor, names)

    async def write() -> None:
        database = create_engine(url)
        await migrate(database)
        await log.append(database, records)
        state = snapshot.dump(engine.state)
        made = snapshots.Snapshot(engine.zoo.name, 10**6, "f" * 64, state)
        await snapshots.save(database, made)
        await database.dispose()

    asyncio.run(write())
