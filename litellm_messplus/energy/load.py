"""Sends a load to an OpenAI-compatible endpoint, and counts what it did."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from litellm_messplus.energy.errors import EndpointError
from litellm_messplus.energy.grid import Cell
from litellm_messplus.energy.prompts import Prompts

CALIBRATION_WORDS = 48
SECONDS = 600.0
"""How long one answer may take."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that one or more answered requests took, by the endpoint's own count.

    Prompt tokens that came out of the endpoint's cache are left out where it counts them.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


class Endpoint:
    """One model at `URL/completions`, where a prompt is the text and no chat template is added."""

    def __init__(self, client: httpx.AsyncClient, url: str, model: str) -> None:
        self._client, self._url, self._model = client, url.rstrip("/"), model
        self._prompts = Prompts()

    async def calibrate(self) -> None:
        """One short request, which tells how many tokens a word has. Raises EndpointError."""
        usage = await self._complete(self._prompts.words(CALIBRATION_WORDS), 1)
        self._prompts.calibrate(CALIBRATION_WORDS, max(1, usage.prompt_tokens))

    async def load(self, cell: Cell, seconds: float) -> Usage:
        """Keep ``cell.concurrency`` requests running until ``seconds`` are over, and end them all.

        Raises EndpointError when one of them fails, once the others have ended: work that is broken
        off could go on at the endpoint, in the next window.
        """
        until = time.monotonic() + seconds
        workers = (self._one_after_the_other(cell, until) for _ in range(cell.concurrency))
        total = Usage()
        for done in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(done, BaseException):
                raise done
            total += done
        return total

    async def _one_after_the_other(self, cell: Cell, until: float) -> Usage:
        done = Usage()
        while done.requests == 0 or time.monotonic() < until:
            prompt = self._prompts.tokens(cell.prompt_tokens)
            done += await self._complete(prompt, cell.completion_tokens)
        return done

    async def _complete(self, prompt: str, completion_tokens: int) -> Usage:
        body = {
            "model": self._model,
            "prompt": prompt,
            "temperature": 0,
            "max_tokens": completion_tokens,
            # vLLM's own, so that every answer has exactly that length; others pass over them.
            "min_tokens": completion_tokens,
            "ignore_eos": True,
        }
        try:
            answer = await self._client.post(f"{self._url}/completions", json=body, timeout=SECONDS)
        except httpx.HTTPError as error:
            raise EndpointError(f"--url: {self._url} does not answer: {error!r}") from error
        if answer.status_code != httpx.codes.OK:
            raise EndpointError(
                f"{self._url} answered {self._model} with status {answer.status_code}: "
                f"{answer.text[:300]}. Is --model the served name, and do --prompt-tokens plus "
                "--completion-tokens fit its context?"
            )
        return self._usage(answer)

    def _usage(self, answer: httpx.Response) -> Usage:
        try:
            usage: Mapping[str, Any] = answer.json()["usage"]
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
            return Usage(1, int(prompt) - int(cached), int(completion))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EndpointError(
                f"{self._url} answers without `usage`, so nobody knows what its joules were for: "
                f"{answer.text[:300]}"
            ) from error
