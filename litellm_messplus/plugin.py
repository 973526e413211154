"""What `litellm_settings.callbacks` names: `litellm_messplus.plugin.instance`.

LiteLLM may load this file by its path, as a module of its own: so there is nothing else in it.
"""

from litellm_messplus.serving.litellm_fit import start

instance = start()
