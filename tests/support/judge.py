"""A scripted judge behind an upstream: knows which answers are good, and errs at a known rate."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

JUDGE = "critic"
"""The model group that grades, and the model behind it."""
_BLOCK = re.compile(r"<(\w+) (answer_\d+)>\n(.*?)\n</\1 \2>", re.DOTALL)


def shown_answers(body: Mapping[str, Any]) -> dict[str, str]:
    """The answers that a request to the judge holds, by the names that it is to use."""
    return {name: text for _, name, text in _BLOCK.findall(body["messages"][-1]["content"])}


def question(body: Mapping[str, Any]) -> str:
    """The last turn of the conversation that a request to the judge holds."""
    conversation = body["messages"][-1]["content"].split(" conversation>\n")[1]
    return str(conversation.rsplit("[user]\n", 1)[1]).rsplit("\n</", 1)[0]


@dataclass(frozen=True)
class ScriptedJudge:
    """Thinks ``good`` good, and says the opposite on a share of the pairs of question and answer,
    the same ones whenever it is asked."""

    good: str
    error_rate: float = 0.0

    def verdict(self, asked: str, answer: str) -> bool:
        """What it says of an answer."""
        digest = blake2b(f"{asked}\0{answer}".encode(), digest_size=8).digest()
        errs = int.from_bytes(digest, "big") / 2**64 < self.error_rate
        return (answer == self.good) != errs

    def reply(self, body: Mapping[str, Any]) -> str:
        """To a request as the upstream gets it."""
        asked = question(body)
        return json.dumps(
            {
                name: {"reason": f"I read {answer}", "satisfied": self.verdict(asked, answer)}
                for name, answer in shown_answers(body).items()
            }
        )
