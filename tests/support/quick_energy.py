"""Written beside a test proxy's configuration in place of the real callback: energy is followed in
windows of a few seconds, and settled soon after."""

WINDOW_SECONDS = 8.0
QUICK_ENERGY = f"""
from litellm_messplus.energy.follow import EnergyFollower
from litellm_messplus.serving import energy_service

EnergyFollower.__init__.__kwdefaults__.update(seconds={WINDOW_SECONDS}, lag_seconds=2.0)
energy_service.WINDOW_SECONDS = 0.5

from litellm_messplus.plugin import instance
"""
