"""A small server on a real port, in a thread of the test process."""

import threading

import uvicorn
from fastapi import FastAPI

from tests.support.patience import PATIENT, until


class Serving:
    """Begins to serve at once; the port answers when it has been made."""

    def __init__(self, app: FastAPI, port: int) -> None:
        self._server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", ws="none"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        until(lambda: self._server.started)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(PATIENT)
