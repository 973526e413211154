"""For every test: one thread of BLAS, as in the proxy and the replay; LiteLLM's prices as they are
installed, not fetched; tables as wide as a terminal that shows them whole."""

import os

from threadpoolctl import threadpool_limits

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ["COLUMNS"] = "120"
threadpool_limits(limits=1, user_api="blas")
