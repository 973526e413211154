"""Figures that pages state are those of the code, or of the benchmark that prints them."""

from datetime import timedelta

import pytest
import yaml

from benchmarks import keys
from benchmarks.simulation.__main__ import agents
from litellm_messplus.brain.web import CONNECTIONS, SWITCH
from litellm_messplus.brain.zoos import SHOWING_SECONDS
from litellm_messplus.cli.every_day import certificate
from litellm_messplus.core.caches import Turn, now
from litellm_messplus.core.line import CACHE_SECONDS, HOUR_SECONDS, VLLM_SECONDS
from litellm_messplus.core.lines import LINES, POINTS, UNUSED_SECONDS
from litellm_messplus.inspecting import listing
from litellm_messplus.labels.agreement import ENOUGH
from litellm_messplus.labels.judge.judge import GATHER_SECONDS
from litellm_messplus.labels.judge.prompts import CONVERSATION_CHARACTERS
from litellm_messplus.page import charts, data, sign_ins
from litellm_messplus.page.routes import HEADERS
from litellm_messplus.page.sign_ins import Kind
from litellm_messplus.serving.configuration import check_affinity
from litellm_messplus.serving.deployments.prices import CACHED_FROM, public_dollars
from litellm_messplus.settings.labels import RUBRIC
from litellm_messplus.store.judging import AGREEMENT_WINDOW
from tests.docs.test_names import options
from tests.support.markdown import ROOT, Document, Row

DOCS = ROOT / "docs"
SONNET = public_dollars({"litellm_params": {"model": "anthropic/claude-sonnet-4-5"}})
assert SONNET is not None
TURN = Turn(60_000, 0, 400)
SUMS_BY_HOUR = max(most for most, step in charts.STEPS if step < timedelta(days=1))
SAID = {
    "conversations": [
        f"{LINES:,} lines and {POINTS:,} prompts",
        f"after {CACHE_SECONDS:g} seconds ({HOUR_SECONDS:,.0f} where",
        f"{VLLM_SECONDS:g} are assumed of vLLM",
        f"costs {now(SONNET, TURN, 58_000):.4f} USD",
        f"written, {now(SONNET, TURN, 0):.4f} USD",
        f"cache, {now(SONNET, TURN, 0, share=0.0):.3f} USD",
        f"`{CACHED_FROM}`",
    ],
    "labels": [
        f"{CONVERSATION_CHARACTERS:,} characters",
        f"up to {GATHER_SECONDS:.0f} seconds",
        f"newest {AGREEMENT_WINDOW:,} such calls",
        f"From {ENOUGH} such calls on",
        RUBRIC,
    ],
    "page": [
        f"newest {charts.NEWEST} requests",
        f"that of the {charts.TRAILING} requests up to it",
        f"at most {sign_ins.MOST[Kind.CODE]} codes and {sign_ins.MOST[Kind.SESSION]} sessions",
        f"{listing.LOOK_BACK:,} positions of the log",
        f"more than {data.LONGEST_SECONDS:g} seconds is given up",
        f"{CONNECTIONS} connections to the database of its own",
        f"up to {SUMS_BY_HOUR} days",
        f"lasts {sign_ins.LASTS[Kind.SESSION] // timedelta(hours=1)} hours",
        SWITCH,
        HEADERS["content-security-policy"],
    ],
}


def rows(page: str, column: str) -> list[Row]:
    return [row for row in Document(DOCS / f"{page}.md").rows if column in row.cells]


@pytest.mark.parametrize(
    ("page", "words"), [(page, words) for page, said in SAID.items() for words in said]
)
def test_a_page_states_the_figure_of_the_code(page: str, words: str) -> None:
    text = Document(DOCS / f"{page}.md").text.replace("\n> ", " ")

    assert words in " ".join(text.split())


def test_figures_in_words_are_those_of_the_code() -> None:
    assert UNUSED_SECONDS == 2 * 3_600.0  # "two unused hours"
    assert sign_ins.LASTS[Kind.CODE] == timedelta(minutes=5)  # "within five minutes"
    assert SHOWING_SECONDS == data.LONGEST_SECONDS


@pytest.mark.parametrize("page", ["certificate", "evidence/conversations"])
def test_defaults_are_those_of_the_command(page: str) -> None:
    found = options(certificate if page == "certificate" else agents)
    stated = {row.cells["Option"].strip("`"): row.cells["Default"] for row in rows(page, "Option")}

    for name, default in found.items():
        if isinstance(default, int | float) and not isinstance(default, bool):
            assert float(stated[name]) == default, name


def test_every_simulated_certificate_covers_enough() -> None:
    for row in rows("evidence/certificate", "Case"):
        assert float(row.cells["Covered at every look"].removesuffix(" %")) >= 95.0


def test_honest_keys_count_and_hostile_ones_stay_within_their_bounds() -> None:
    found = {row.cells["Keys"]: row.cells for row in rows("evidence/labels", "Keys")}

    def figure(case: keys.Case, column: str) -> float:
        return float(found[case.name][column].partition(" ")[0])

    first = next(iter(found.values()))
    assert next(keys.markdown({"cases": []})) == f"| {' | '.join(first)} |"
    for case in keys.HONEST:
        assert figure(case, "Honest labels that count") >= 100.0 * keys.COUNTED
    for case in (*keys.ALONE, *keys.TOGETHER):
        assert abs(figure(case, "The others' satisfaction")) <= case.hostile * keys.MOVED
        assert figure(case, "Their cost") <= 100.0 * case.hostile * (keys.COST - 1.0)


def test_the_remedy_for_affinity_is_one() -> None:
    blocks = Document(DOCS / "conversations.md").blocks
    configs = [yaml.safe_load(each.code) for each in blocks if each.language == "yaml"]
    (remedy,) = [each["router_settings"] for each in configs if "router_settings" in each]

    check_affinity(["llama"], remedy)
