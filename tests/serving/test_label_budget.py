"""One key takes neither the labels of a day from the others, nor more than the budget: each label
is priced by what the judge will read before it is bought."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from litellm_messplus.brain import buying
from litellm_messplus.brain.buying import LabelPurse
from litellm_messplus.costs.price import Price
from litellm_messplus.labels.judge.asking import Reply
from litellm_messplus.serving.judges import JudgeCalls
from litellm_messplus.store.tables import gradings, requests
from tests.support.in_process import brain_of, written
from tests.support.journey import Journey, journey
from tests.support.judge import shown_answers
from tests.support.patience import until_it_holds

PRICE = Price(prompt=1e-5, completion=1e-5)
BUDGET = 0.5
BOUGHT = {
    "where needed": {"buy_labels": {"how": "grade", "budget_per_day": BUDGET}},
    "all": {
        "buy_labels": {"how": "grade", "judge": "critic", "budget_per_day": BUDGET},
        "label_rate": 1.0,
    },
}
SHORT = "word " * 100
LONG = "word " * 6400
"""32,000 characters: as many as a judge gets to see."""


async def simulated_judge(
    _self: JudgeCalls,
    messages: Sequence[Mapping[str, str]],
    schema: Mapping[str, Any],
    timeout_seconds: float,
) -> Reply:
    """Is content with all, at a token for four bytes."""
    verdict = {"reason": "it is good", "satisfied": True}
    text = json.dumps(dict.fromkeys(shown_answers({"messages": messages}), verdict))
    read, wrote = sum(len(each["content"]) for each in messages) // 4, len(text) // 4
    return Reply(text, PRICE.of(float(read), float(wrote)), read, wrote)


@asynccontextmanager
async def purchasing(folder: Path, zoo: dict[str, Any]) -> AsyncIterator[Journey]:
    async with journey(folder, zoo) as proxy:
        await brain_of(proxy.plugin.parts).judges.look()
        yield proxy


@pytest.fixture(autouse=True)
def _judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JudgeCalls, "__call__", simulated_judge)
    monkeypatch.setattr(JudgeCalls, "price", lambda _self: PRICE)
    # What has been labelled is in the log at the next look, and no longer reserved.
    monkeypatch.setattr(buying, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(buying, "LabelPurse", partial(LabelPurse, start_allowance=1.0))


async def serve(
    proxy: Journey, key: str, count: int, *, prompt: str = SHORT, answer: str = "good"
) -> None:
    """Answer so many requests of a key and grade them, with a look at the log every ten."""
    response = {"id": "chatcmpl", "choices": [{"message": {"content": answer}}]}
    judge = brain_of(proxy.plugin.parts).judges.of_zoo["zoo"]
    for number in range(count):
        if number % 10 == 0:
            await brain_of(proxy.plugin.parts).journal.flush()
            await brain_of(proxy.plugin.parts).buyers.look()
        asked = await proxy.ask(f"{number} {prompt}", key=key, max_tokens=8000)
        usage: dict[str, Any] = {
            "prompt_tokens": len(prompt) // 4,
            "completion_tokens": len(answer) // 4,
        }
        await proxy.answers(asked, answer=response, **usage)
    await until_it_holds(lambda: not judge.waiting and not len(judge._busy))
    await brain_of(proxy.plugin.parts).journal.flush()


async def labels_by_key(folder: Path) -> dict[str, list[float]]:
    """What each label of a key cost, in dollars."""
    keys = {row.request_id: row.key_hash for row in await written(folder, requests)}
    found: dict[str, list[float]] = {key: [] for key in keys.values()}
    for row in await written(folder, gradings):
        found[keys[row.request_id]].append(row.cost)
    return found


@pytest.mark.parametrize("zoo", BOUGHT.values(), ids=BOUGHT)
@pytest.mark.parametrize("attack", [{"prompt": LONG}, {"answer": LONG}], ids=["asks", "is told"])
async def test_long_prompts_and_answers_of_one_key_leave_labels_to_the_others(
    tmp_path: Path, zoo: dict[str, Any], attack: dict[str, str]
) -> None:
    async with purchasing(tmp_path, zoo) as proxy:
        for number in range(30):
            await serve(proxy, f"honest {number % 3}", 1)
        await serve(proxy, "hostile", 100, **attack)
        await serve(proxy, "late", 40)
    found = await labels_by_key(tmp_path)
    spent = [cost for costs in found.values() for cost in costs]

    assert sum(spent) <= BUDGET + max(spent)
    assert sum(found["hostile"]) <= 0.6 * BUDGET  # though it made most of the requests
    assert len(found["late"]) >= 10
