"""The form of `docs/labels.md` and the handler behind it hand a verdict on to the proxy."""

import re
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from tests.support.markdown import ROOT, Document

PAGE = Document(ROOT / "docs" / "labels.md")


class Handed:
    """Stands in for the proxy's answer."""

    def raise_for_status(self) -> None:
        return None


@pytest.mark.filterwarnings("ignore:.*TestClient.*")
@pytest.mark.parametrize("satisfied", [True, False])
def test_the_form_reaches_the_proxy(monkeypatch: pytest.MonkeyPatch, satisfied: bool) -> None:
    handed: list[dict[str, Any]] = []

    def post(url: str, **body: Any) -> Handed:
        handed.append({"url": url, **body})
        return Handed()

    (form,) = [block.code for block in PAGE.blocks if block.language == "html"]
    (handler,) = [
        block.code
        for block in PAGE.blocks
        if block.language == "python" and '@app.post("/feedback")' in block.code
    ]
    monkeypatch.setenv("LITELLM_API_KEY", "sk-own")
    monkeypatch.setattr(httpx, "post", post)
    scope: dict[str, Any] = {}
    exec(handler, scope)

    assert set(re.findall(r'name="(\w+)"', form)) == {"id", "satisfied"}
    (value,) = re.findall(rf'value="({str(satisfied).lower()})"', form)
    fields = {"id": "chatcmpl-1", "satisfied": value}
    with TestClient(scope["app"]) as browser:
        answer = browser.post("/feedback", data=fields)

    assert answer.status_code == 200
    (given,) = handed
    assert given["url"].endswith("/messplus/feedback")
    assert given["headers"] == {"Authorization": "Bearer sk-own"}
    assert given["json"] == {"id": "chatcmpl-1", "satisfied": satisfied}
