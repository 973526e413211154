"""On every page, links lead somewhere and examples can be used as they stand."""

import json
import re
from typing import Any

import pytest
import yaml

from litellm_messplus.serving.deployments.index import build_zoos
from litellm_messplus.settings.load import SECTION, load_settings
from tests.support.markdown import ROOT, Block, Document

NEXT_TO_THEM = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [Document(path) for path in [*NEXT_TO_THEM, *sorted((ROOT / "docs").rglob("*.md"))]]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.name)
def test_links_lead_somewhere(page: Document) -> None:
    for link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.path.parent / target).resolve() if target else page.path
        assert path.exists(), link
        if anchor and path.suffix == ".md":
            assert anchor in Document(path).anchors(), link


def blocks_of(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{page.path.name}: {' / '.join(block.headings[-1:])}")
        for page in PAGES
        for block in page.blocks
        if block.language in languages
    ]


@pytest.mark.parametrize("block", blocks_of("yaml", "yml"))
def test_examples_of_configuration_can_be_honoured(block: Block) -> None:
    config = yaml.safe_load(block.code)

    if isinstance(config, dict) and SECTION in config:
        settings = load_settings(config)
        if "model_list" in config:
            assert build_zoos(settings, config["model_list"])


@pytest.mark.parametrize("block", blocks_of("python"))
def test_examples_of_python_compile(block: Block) -> None:
    compile(block.code, "example", "exec")


@pytest.mark.parametrize("block", blocks_of("json"))
def test_examples_of_json_parse(block: Block) -> None:
    json.loads(block.code)
