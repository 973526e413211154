"""The tokens of a prompt, counted where LiteLLM brings the model's own tokenizer along."""

from collections.abc import Mapping, Sequence

import litellm
import litellm.litellm_core_utils.default_encoding  # points tiktoken at the files in the package
import tiktoken

from litellm_messplus.prediction.conversation import Conversation
from litellm_messplus.proxy.deployments import Deployment, candidate_of, model_info

BUNDLED = frozenset({"cl100k_base", "o200k_base"})
"""Encodings that LiteLLM has in its package; any other would be downloaded."""
PROVIDERS = frozenset({"openai", "azure", "text-completion-openai"})
LONGEST = 4_000
"""Characters up to which a prompt is counted, in 0.2 ms at most; the length of a longer one tells
enough, and counting it would take longer than deciding."""
TOKENS_PER_TURN = 4
"""What a chat format adds to each message."""


class PromptTokens:
    """Of the candidates of every zoo whose tokenizer is at hand; the others are left out."""

    def __init__(self, zoos: Sequence[str], model_list: Sequence[Deployment]) -> None:
        self._encodings: dict[str, dict[str, str]] = {name: {} for name in zoos}
        for deployment in model_list:
            encoding = _encoding_name(deployment)
            known = self._encodings.get(str(deployment.get("model_name")))
            if known is not None and encoding is not None:
                known[candidate_of(deployment)] = encoding

    def warm_up(self) -> None:
        """Load what will be needed: the first use of an encoding takes a second or so."""
        for name in {name for known in self._encodings.values() for name in known.values()}:
            tiktoken.get_encoding(name)

    def count(self, zoo: str, conversation: Conversation) -> Mapping[str, int]:
        """By candidate; empty for a prompt that is too long to be counted in time."""
        known, text = self._encodings[zoo], conversation.text
        if not known or len(text) > LONGEST:
            return {}
        extra = TOKENS_PER_TURN * len(conversation.turns)
        counted = {
            name: len(tiktoken.get_encoding(name).encode_ordinary(text)) + extra
            for name in set(known.values())
        }
        return {candidate: counted[name] for candidate, name in known.items()}


def _encoding_name(deployment: Deployment) -> str | None:
    """None for a model that is not OpenAI's, or whose tokenizer is not in LiteLLM's package."""
    params = deployment["litellm_params"]
    base = params.get("base_model") or model_info(deployment).get("base_model")
    try:
        model, provider, _, _ = litellm.get_llm_provider(
            params["model"], params.get("custom_llm_provider"), params.get("api_base")
        )
        name = tiktoken.encoding_name_for_model(base or model)
    except Exception:  # LiteLLM and tiktoken raise for what they do not know
        return None
    return name if provider in PROVIDERS and name in BUNDLED else None
