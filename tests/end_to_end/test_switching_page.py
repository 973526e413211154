"""The steps of `docs/switching.md`, done as the page says them, under load, on a real proxy."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.judge import ScriptedJudge
from tests.support.markdown import ROOT, Document
from tests.support.patience import until
from tests.support.upstream import Reply, Upstream
from tests.support.walked_page import START, Users, WalkedPage, is_as_shown

pytestmark = pytest.mark.end_to_end

PAGE = Document(ROOT / "docs" / "switching.md")
STEPS = [block for block in PAGE.blocks if "The steps" in block.headings]
GOOD = "It is 42."
SECONDS = {"70B": 0.15, "8B": 0.05}
CRITIC = ScriptedJudge(good=GOOD)


def script(model: str, body: dict[str, Any]) -> Reply:
    """The small model is quick, and wrong once in ten questions; the judge sees it."""
    size = next((size for size in SECONDS if size in model), None)
    if size is None:
        return Reply(CRITIC.reply(body))
    is_wrong = size == "8B" and body["messages"][-1]["content"].split()[1].endswith("0")
    return Reply("I cannot say." if is_wrong else GOOD, delay_seconds=SECONDS[size])


def sizes_called(upstream: Upstream) -> set[str]:
    """The models of the group that were called since the last look."""
    called = {size for model in upstream.models_called() for size in SECONDS if size in model}
    upstream.requests.clear()
    return called


def test_every_step_of_the_page_does_what_it_says_and_no_request_fails(
    tmp_path: Path, upstream: Upstream
) -> None:
    upstream.script = script
    page = WalkedPage(tmp_path, upstream.url)
    done = page.walk(STEPS)
    try:
        with Users(page, "llama", at_once=4) as users:
            for block, after in zip(STEPS, [*STEPS[1:], None], strict=True):
                next(done)
                if START in block.code:
                    users.go_on()
                if after is not None and START in after.code:
                    users.wait()
            users.wait()
            assert sizes_called(upstream) >= {"70B", "8B"}
            users.go_on()
            enough = users.answered + 20
            until(lambda: users.answered >= enough)
            users.wait()
    finally:
        page.stop()
    assert users.refused == []
    assert sizes_called(upstream) == {"70B"}  # as at the beginning


@pytest.mark.parametrize(
    ("found", "is_shown"),
    [
        ("llama: on\n  12 %, key abc: go\nmore\n", True),
        ("llama: on\n  12 %, key abc: go", False),
        ("llama: watch\n  12 %, key abc: go\nmore\n", False),
        ("llama: on\n  many %, key abc: go\nmore\n", False),
    ],
)
def test_only_numbers_and_what_the_page_leaves_out_may_differ(found: str, is_shown: bool) -> None:
    assert is_as_shown(found, "llama: on\n  99.5 %, …: go\n…") is is_shown
