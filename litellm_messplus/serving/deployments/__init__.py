"""LiteLLM's deployments: candidates, prices, meters of tokens and of energy."""
