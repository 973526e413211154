"""LiteLLM's formats: requests and answers on each of its APIs."""
