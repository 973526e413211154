"""The headers of a routed answer."""

from litellm_messplus.proxy.header_values import header_value
from litellm_messplus.proxy.routes import FEEDBACK_PATH
from litellm_messplus.records import RequestRecord


def response_headers(
    record: RequestRecord, model: str | None, cached_from: str | None
) -> dict[str, str]:
    """Of a request that ``model`` answered, None where nobody did or nobody knows; ``cached_from``
    wrote the answer that LiteLLM's cache repeated."""
    headers = {
        "x-messplus-request-id": record.request_id,
        "x-messplus-service-level": header_value(record.service_level),
        "x-messplus-exploration": str(record.is_exploration).lower(),
        "x-messplus-feedback": FEEDBACK_PATH,
    }
    if model is not None:
        headers |= {"x-messplus-model": header_value(model)}
    if cached_from is not None:
        headers |= {"x-messplus-cached-from": header_value(cached_from)}
    return headers
