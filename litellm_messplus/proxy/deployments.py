"""Reading one of LiteLLM's deployments: an entry of `model_list`, or what its router shows."""

from collections.abc import Mapping
from typing import Any

import litellm

Deployment = Mapping[str, Any]


def model_info(deployment: Deployment) -> Mapping[str, Any]:
    """LiteLLM's `model_info` of a deployment, empty where it has none."""
    return deployment.get("model_info") or {}


def own_info(deployment: Deployment) -> Mapping[str, Any]:
    """What `model_info.messplus` says; there, because LiteLLM sends unknown params upstream."""
    return model_info(deployment).get("messplus") or {}


def deployment_id(deployment: Deployment) -> str:
    """LiteLLM's id of a deployment."""
    return str(model_info(deployment).get("id"))


def candidate_of(deployment: Deployment) -> str:
    """The candidate that a deployment is a replica of: one model, however often it is served.

    Deployments of one `litellm_params.model` are replicas; `model_info.messplus.candidate` names
    the candidate where the models are spelled differently, or must be kept apart.
    """
    named = own_info(deployment).get("candidate")
    return str(named or deployment["litellm_params"]["model"])


def upstream_model(deployment: Deployment) -> str:
    """The name by which the endpoint knows the model: without LiteLLM's prefix of the provider."""
    params = deployment["litellm_params"]
    try:
        model, _, _, _ = litellm.get_llm_provider(
            params["model"], params.get("custom_llm_provider")
        )
    except Exception:  # it raises a bare Exception for a model that it does not know
        return str(params["model"])
    return str(model)


def place_of(deployment: Deployment) -> str:
    """Where it stands in the configuration, for messages."""
    name, model = deployment.get("model_name"), deployment["litellm_params"]["model"]
    return f"model_list, {name} ({model})"
