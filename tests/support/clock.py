"""A clock that jumps, for a test proxy's worker and its brain.

Simulated: the time of day is another one for the plugin's modules, and for all that asks
`time.time`; the machine's clock and the monotonic one stay, as where an operator or NTP sets the
time. (libfaketime would shift the whole process. It slows a proxy down until nothing is in time.)
"""

from pathlib import Path

SHIFT = "clock"
"""The file that says by how many seconds."""
JUMPING = f"""
import datetime as real
import sys
import time
from pathlib import Path

SHIFT = Path(__file__).with_name("{SHIFT}")
machine_time = time.time


def shift():
    return float(SHIFT.read_text())


class Jumping(real.datetime):
    @classmethod
    def now(cls, tz=None):
        return real.datetime.now(tz) + real.timedelta(seconds=shift())


time.time = lambda: machine_time() + shift()
for name, module in list(sys.modules.items()):
    if name.startswith("litellm_messplus") and vars(module).get("datetime") is real.datetime:
        module.datetime = Jumping
"""


OF_THE_WORKER = f"from litellm_messplus.plugin import instance\n{JUMPING}"
OF_THE_BRAIN = f"import litellm_messplus.brain.process\n{JUMPING}"


def jump(folder: Path, seconds: int) -> None:
    """Be so many seconds off the machine's clock from now on."""
    new = folder / f"{SHIFT}.new"
    new.write_text(str(seconds))
    new.replace(folder / SHIFT)
