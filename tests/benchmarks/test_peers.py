"""The benchmark of peers: all on the same recordings, and it says where one of them wins."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.peers import __main__ as command
from benchmarks.peers import paced_bandit, page, picture
from benchmarks.peers.runs import LITELLM, MIX, ORACLE, OURS, PAPER, PARETO, WEIGHED, Kind, Row
from tests.support.recordings import RATES, recording, synthetic, write_synthetic

ROW = Row("made", OURS, Kind.ONLINE, 0.7, 0.0, 10.0, 10.0, 1.0, 0.0, 0.0, 0.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_synthetic(tmp_path / "tiny.csv.gz", synthetic(120))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], str]:
    command.main([*arguments, "--seeds", "2", "--json"])
    shown = capsys.readouterr()
    found: dict[str, Any] = json.loads(shown.out)
    return found, shown.err


def test_every_peer_runs_on_each_recording_and_what_does_not_run_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paced_bandit, "missing", lambda: "not here")
    found, said = run(capsys, str(folder))

    assert found["peers"] == [OURS, PAPER, LITELLM, WEIGHED, MIX, ORACLE]
    assert [row["peer"] for row in found["table"] if row["kind"] == "alone"] == list(RATES)
    assert found["recordings"] == [{"name": "tiny", "alpha": 0.8, "requests": 120, "models": 3}]
    assert found["not_run"] == {PARETO: "not here"}
    assert f"not run: {PARETO}: not here" in said
    assert f"not there, so not run: {folder / 'ulab.csv.gz'}" in said


def test_a_peers_best_setting_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["peer"]: row for row in run(capsys, str(folder))[0]["table"]}

    assert rows[WEIGHED]["over_mix"] <= rows[LITELLM]["over_mix"]


def test_no_fixed_choice_beats_the_mix(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["peer"]: row for row in run(capsys, str(folder))[0]["table"]}

    assert all(rows[model]["over_mix"] > 1.0 - 1e-9 for model in RATES)
    assert rows[MIX]["over_mix"] == 1.0
    assert rows[ORACLE]["over_mix"] < 1.0
    assert rows["small"]["below_half_point"] == 1.0
    assert rows["large"]["below_half_point"] == 0.0
    assert rows[OURS]["cpu_ms"] > 0.0


def test_a_file_may_have_its_own_alpha(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = run(capsys, str(folder / "tiny.csv.gz"), "--alpha", "0.6")

    assert found["recordings"][0]["alpha"] == 0.6


def test_an_empty_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main([str(tmp_path)])
    assert "given no recording; allowed: tiny, ulab" in capsys.readouterr().err


def test_it_says_where_a_peer_wins_and_where_none_does() -> None:
    cheaper = replace(ROW, peer=LITELLM, over_mix=0.9, cpu_ms=0.1)
    worse = replace(cheaper, recording="other", over_mix=1.2)
    broken = replace(cheaper, recording="third", below_half_point=1.0)
    better = replace(worse, recording="third", peer=PARETO, satisfaction=0.75, d_points=5.0)
    own = [replace(ROW, recording=name) for name in ("other", "third")]

    assert list(page.wins([ROW, cheaper, own[0], worse, own[1], broken, better])) == [
        f"- made, this project 1.00: {LITELLM} costs less (0.90).",
        "- other, this project 1.00: no peer costs less or satisfies more.",
        f"- third, this project 1.00: {LITELLM}, which does not hold the promise, costs less "
        f"(0.90); {PARETO} satisfies more (75.0 %) at 1.20.",
        f"- CPU a decision: less on every recording with {LITELLM}, {PARETO}.",
    ]


def test_a_promise_that_was_not_held_is_in_brackets() -> None:
    broken = replace(ROW, peer=LITELLM, over_mix=0.5, below_half_point=0.2)

    assert list(page.cells([ROW, broken]))[1:] == [
        [OURS, "1.00", "1.00", "0.50 ms"],
        [LITELLM, "(0.50)", "0.50", "0.50 ms"],
    ]


def test_only_what_lies_between_the_comments_of_the_page_is_written() -> None:
    text = page.PAGE.read_text("utf-8")

    written = page.replaced(text, "peers", "| new |")
    assert "\n| new |\n" in written
    assert written.partition("<!--")[0] == text.partition("<!--")[0]
    assert page.replaced(written, "peers", "| new |") == written
    with pytest.raises(ValueError, match="others"):
        page.replaced(text, "others", "")


def test_the_picture_shows_every_peer_and_is_the_same_each_time(tmp_path: Path) -> None:
    rows = [ROW, replace(ROW, peer=LITELLM, over_mix=2.0, below_half_point=1.0)]
    for name in ("one.svg", "other.svg"):
        picture.draw(rows, tmp_path / name)

    drawn = (tmp_path / "one.svg").read_text("utf-8")
    assert OURS in drawn
    assert LITELLM in drawn
    assert drawn == (tmp_path / "other.svg").read_text("utf-8")


def test_contexts_are_white_whatever_the_labels() -> None:
    read = paced_bandit.contexts(synthetic(300).prompts)

    assert (read[:, -1] == 1.0).all()
    assert np.allclose(np.cov(read[:, :-1].T), np.eye(read.shape[1] - 1), atol=1e-6)


def test_paretobandit_keeps_to_its_spend_and_prefers_what_satisfies() -> None:
    pytest.importorskip("pareto_bandit", reason="the extra `peers` is not installed")
    made = recording(np.tile([0.0, 1.0, 1.0], (600, 1)), np.tile([1.0, 2.0, 9.0], (600, 1)))
    read = paced_bandit.contexts(made.prompts)

    outcome = paced_bandit.run(made, made.satisfied, read, spend=2.0, delay=0, seed=0)

    assert (outcome.served[-200:] == 1).mean() > 0.9
    assert outcome.cost.mean() < 2.2
