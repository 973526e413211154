"""The runbook has a section for every alert, and no other."""

import re

from litellm_messplus.status.report import AlertKind
from tests.support.markdown import ROOT

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text("utf-8")


def test_every_alert_has_a_section_by_its_name() -> None:
    sections = re.findall(r"^## ([a-z_]+)$", RUNBOOK, re.MULTILINE)

    assert sorted(sections) == sorted(kind.value for kind in AlertKind)
