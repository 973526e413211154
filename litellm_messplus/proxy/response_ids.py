"""Ids of answers, as the log has them, and what LiteLLM writes into them."""

from contextlib import suppress


def plain_response_id(given: str) -> str:
    """What LiteLLM's log event says of an answer with that id.

    On the responses surface LiteLLM encrypts the id that a client gets, each time anew: 425
    characters and more, and nothing that an answer could be found by (measured on 1.106.2).
    """
    if given.startswith("resp_"):
        with suppress(Exception):  # another LiteLLM may do without
            from litellm.proxy.hooks.responses_id_security import ResponsesIDSecurity

            plain, *_ = ResponsesIDSecurity()._decrypt_response_id(given)
            return str(plain)
    return given


def deployment_of_response(response_id: str) -> str | None:
    """LiteLLM's id of the deployment that gave a response; None for an id that is not its own."""
    from litellm.responses.utils import ResponsesAPIRequestUtils

    found = ResponsesAPIRequestUtils.get_model_id_from_response_id(plain_response_id(response_id))
    return None if found is None else str(found)
