"""What the process of the learner imports: one more process of each proxy must be small."""

import subprocess
import sys

import pytest

LISTED = """
import sys
import litellm_messplus.learning.process
print(*sys.modules)
"""
NEVER = (
    *("litellm", "fastapi", "httpx", "openai", "torch", "transformers", "onnxruntime"),
    *("pandas", "polars", "pyarrow", "scipy", "sklearn", "matplotlib"),
    *(
        f"litellm_messplus.{room}"
        for room in ("serving", "labels", "encoders", "energy", "page", "replay", "status", "cli")
    ),
)


@pytest.fixture(scope="module")
def imported() -> set[str]:
    listed = subprocess.run(
        [sys.executable, "-c", LISTED], capture_output=True, text=True, check=True
    )
    return set(listed.stdout.split())


@pytest.mark.parametrize("name", NEVER)
def test_the_learner_does_not_import_what_only_serving_needs(imported: set[str], name: str) -> None:
    assert "litellm_messplus.learning.process" in imported
    assert [each for each in imported if each == name or each.startswith(f"{name}.")] == []
