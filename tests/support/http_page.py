"""What `docs/http.md` shows, for the tests that hold the code to it."""

import json
from typing import Any, cast

from tests.support.markdown import ROOT, Document

HTTP = Document(ROOT / "docs" / "http.md")


def example_of_a_request() -> dict[str, Any]:
    """Read the example of a request that the page shows."""
    (example,) = [
        json.loads(block.code)
        for block in HTTP.blocks
        if block.language == "json" and block.headings[-1] == "GET /messplus/requests/{id}"
    ]
    return cast(dict[str, Any], example)
