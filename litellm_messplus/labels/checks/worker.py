"""What runs in the process of the sandbox: `python -m litellm_messplus.labels.checks.worker`.

A line on stdin is a task, `[function, CPU seconds, arguments]`; a line on stdout is its result,
`[true, result]` or `[false, error]`. The first line says that it is ready.
"""

import json
import signal
import sys
from collections.abc import Callable

from litellm_messplus.labels.checks.fitting import misfit
from litellm_messplus.labels.checks.matching import matches

FUNCTIONS: dict[str, Callable[..., object]] = {"misfit": misfit, "matches": matches}


def main() -> None:
    """Until stdin ends, which it does with the proxy."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the proxy's, which then ends us
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # kills us: nothing else stops a pattern
    _say(True, "ready")
    for line in sys.stdin:
        function, seconds, arguments = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            _say(True, FUNCTIONS[function](*arguments))
        except Exception as error:  # of a library, at what nobody foresaw: named, not quoted
            _say(False, type(error).__name__)
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _say(succeeded: bool, result: object) -> None:
    print(json.dumps([succeeded, result]), flush=True)


if __name__ == "__main__":
    main()
