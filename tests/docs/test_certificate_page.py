"""`docs/certificate.md` names the options and words, its evidence the cases of the benchmark."""

import inspect

import pytest

from benchmarks.certificate import CASES
from litellm_messplus.certificate.evidence import Sampling
from litellm_messplus.cli.every_day import certificate
from litellm_messplus.figures.interval import Verdict
from tests.support.markdown import ROOT, Document, code_of

DOCS = ROOT / "docs"
ROWS = [
    row
    for page in ("certificate.md", "evidence/certificate.md")
    for row in Document(DOCS / page).rows
]
NAMES = {"as_json": "json"}


def rows(column: str) -> dict[str, dict[str, str]]:
    found = [row.cells for row in ROWS if column in row.cells]
    return {code_of(cells[column]) or cells[column]: cells for cells in found}


def test_the_options_are_those_of_the_command() -> None:
    parameters = inspect.signature(certificate).parameters
    options = {f"--{NAMES.get(name, name).replace('_', '-')}" for name in parameters} - {"--zoo"}

    assert set(rows("Option")) == options


@pytest.mark.parametrize("name", ["level", "wait", "window"])
def test_the_defaults_are_those_of_the_command(name: str) -> None:
    default = inspect.signature(certificate).parameters[name].default

    assert float(rows("Option")[f"--{name}"]["Default"]) == default


def test_every_verdict_and_every_sampling_is_explained() -> None:
    verdicts = {name.removesuffix(" x points") for name in rows("Verdict")}

    assert verdicts == set(Verdict)
    assert set(rows("`sampling`")) == set(Sampling)


def test_the_table_has_every_case_of_the_benchmark_and_none_covers_too_little() -> None:
    found = rows("Case")

    assert list(found) == [case.name for case in CASES]
    for cells in found.values():
        assert float(cells["Covered at every look"].removesuffix(" %")) >= 95.0
