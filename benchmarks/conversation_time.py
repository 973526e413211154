"""The time to find the place of a request: the longest known beginning of its prompt.

    python -m benchmarks.conversation_time

A session's last requests, of 48,000 and of 416,000 characters, are looked up among 20,000 other
lines. The budgets are 0.2 and 1.5 ms in the median of CPU time. Then the memory of the lines is
printed, with as many prompts as are remembered.
"""

import statistics
import time
import tracemalloc

from litellm_messplus.core.encoder import Conversation, Turn
from litellm_messplus.core.line import LineRequest
from litellm_messplus.core.lines import LINES, POINTS, Lines

CASES = ((48_000, 40, 0.2), (416_000, 300, 1.5))
"""Characters of a prompt, its turns, and the budget in milliseconds."""
TIMES = 200


def prompt(characters: int, turns: int, number: int) -> Conversation:
    """Make a prompt: a system text of a third of its length, then the turns of a tool loop."""
    system = "x" * (characters // 3)
    each = "y" * ((characters - len(system)) // turns)
    roles = ("user", *(("assistant", "tool")[place % 2] for place in range(turns - 1)))
    spoken = tuple(Turn(role, f"{number} {place} {each}") for place, role in enumerate(roles))
    return Conversation((Turn("system", system), *spoken), tools=("bash: Run a command",))


def filled() -> Lines:
    """Make as many lines, and as many prompts, as are remembered."""
    lines = Lines(b"of the benchmark")
    for line in range(LINES):
        for turn in range(POINTS // LINES):
            spoken = [Turn("user", f"question {line}")]
            for answered in range(turn):
                spoken += [Turn("assistant", f"answer {answered}"), Turn("user", "more")]
            lines.find(
                LineRequest(f"{line}/{turn}", "zoo", "key", Conversation(tuple(spoken))), 0.0
            )
    return lines


def milliseconds(lines: Lines, characters: int, turns: int) -> list[float]:
    """Measure the CPU time of each look-up of a request that extends a line."""
    found = []
    for number in range(TIMES):
        conversation = prompt(characters, turns - 1, number)
        lines.find(LineRequest(f"before {number}", "zoo", "key", conversation), 0.0)
        more = (Turn("assistant", "an answer"), Turn("tool", "a result"))
        grown = Conversation((*conversation.turns, *more), tools=conversation.tools)
        request = LineRequest(f"now {number}", "zoo", "key", grown)
        started = time.thread_time()
        place = lines.find(request, 0.0)
        found.append((time.thread_time() - started) * 1000)
        if place.turn != 2:
            raise SystemExit("not a measurement: the line was not found")
    return found


def main() -> None:
    lines, is_over = filled(), False
    for characters, turns, budget in CASES:
        median = statistics.median(milliseconds(lines, characters, turns))
        is_over |= median > budget
        print(f"{characters:>7,} characters  {median:.3f} ms (budget {budget} ms)")
    tracemalloc.start()
    lines = filled()
    held, _ = tracemalloc.get_traced_memory()
    known, prompts = len(lines._lines), len(lines._prompts._order)
    print(f"{known:>7,} lines       {held / 2**20:.0f} MiB, with {prompts:,} prompts")
    raise SystemExit(is_over)


if __name__ == "__main__":
    main()
