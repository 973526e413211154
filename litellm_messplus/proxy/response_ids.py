"""Ids of answers, as the log has them."""

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
