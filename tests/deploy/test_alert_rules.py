"""The alert rules for Prometheus: tried by its own tool, and held to what the plugin exports."""

import re
import subprocess
from typing import Any

import pytest
import yaml

from litellm_messplus.brain.metrics import MEANINGS
from litellm_messplus.status.alerts import AlertKind
from tests.support.markdown import ROOT, Document
from tests.support.packages import program

RULES = ROOT / "deploy" / "prometheus-rules.yml"
TRIED = ROOT / "deploy" / "prometheus-rules.test.yml"
NOTICE = AlertKind.THIN_EVIDENCE
PASSED_ON = {"MessplusAlertNow", "MessplusAlertToday"}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


@pytest.mark.parametrize("what", ["check rules deploy/prometheus-rules.yml", f"test rules {TRIED}"])
def test_prometheuss_own_tool_accepts_them(what: str) -> None:
    promtool = program("prometheus").with_name("promtool")
    done = subprocess.run([promtool, *what.split()], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_each_kind_of_alert_is_tried_and_all_but_the_notice_are_passed_on_once() -> None:
    first = yaml.safe_load(TRIED.read_text())["tests"][0]
    series = " ".join(each["series"] for each in first["input_series"])
    expected = [
        alert["exp_labels"]["kind"]
        for each in first["alert_rule_test"]
        if each["alertname"] in PASSED_ON
        for alert in each["exp_alerts"]
    ]

    assert set(re.findall(r'kind="(\w+)"', series)) == set(AlertKind)
    assert sorted(expected) == sorted(set(AlertKind) - {NOTICE})


def test_the_kinds_that_a_rule_names_are_those_of_the_code() -> None:
    named = re.findall(r'kind[=!]~"([\w|]+)"', RULES.read_text())

    assert len(named) == 2
    assert {kind for each in named for kind in each.split("|")} <= set(AlertKind)


def test_each_metric_of_a_rule_is_exported() -> None:
    named = {name for rule in rules() for name in re.findall(r"messplus_\w+", rule["expr"])}

    assert named <= MEANINGS.keys()
    assert named >= {"messplus_alert", "messplus_up", "messplus_degraded"}


def test_each_rule_says_how_urgent_it_is_and_leads_to_a_section_that_says_what_to_type() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert rule["annotations"]["summary"]
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        anchors = Document(ROOT / page).anchors()
        wanted = set(AlertKind) if "$labels.kind" in anchor else {anchor}
        assert wanted <= anchors, rule["alert"]
