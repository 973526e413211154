"""What a vLLM server itself says that it has done, on `/metrics`."""

from dataclasses import dataclass

import httpx

NAMES = {
    "requests": "vllm:request_success_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "completion_tokens": "vllm:generation_tokens_total",
}


@dataclass(frozen=True)
class Work:
    """Since the server's start; of two of them, the difference is what it did in between."""

    requests: int
    prompt_tokens: int
    completion_tokens: int

    def __sub__(self, earlier: "Work") -> "Work":
        return Work(
            self.requests - earlier.requests,
            self.prompt_tokens - earlier.prompt_tokens,
            self.completion_tokens - earlier.completion_tokens,
        )


def work_done(url: str) -> Work:
    """By the server at `http://HOST:PORT`. A counter has a line for each of its labels."""
    lines = httpx.get(f"{url}/metrics", timeout=30).raise_for_status().text.splitlines()

    def total(name: str) -> int:
        found = [line for line in lines if line.startswith(f"{name}{{")]
        if not found:
            raise AssertionError(f"the server at {url} has no counter {name}")
        return sum(int(float(line.split()[-1])) for line in found)

    return Work(**{field: total(name) for field, name in NAMES.items()})
