"""LiteLLM's shapes: what a request and an answer look like on each of its APIs."""
