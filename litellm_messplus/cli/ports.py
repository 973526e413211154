"""The ports that `messplus up` serves on, before anything is loaded."""

import socket
from collections.abc import Mapping

HOST = "127.0.0.1"


def require_free(ports: Mapping[str, int]) -> None:
    """Of each option, its port. Raises SystemExit with the one that cannot be served on.

    LiteLLM would take another at random in place of 4000.
    """
    if len(set(ports.values())) < len(ports):
        raise SystemExit(
            f"messplus: {' and '.join(ports)} are both {next(iter(ports.values()))}; allowed: two "
            "ports"
        )
    for option, port in ports.items():
        reason = _why_not(port)
        if reason is not None:
            raise SystemExit(
                f"messplus: port {port} cannot be served on ({reason}): stop what uses it, or give "
                f"another with {option}"
            )


def _why_not(port: int) -> str | None:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except (OSError, OverflowError) as error:
            return getattr(error, "strerror", None) or str(error)
    return None
