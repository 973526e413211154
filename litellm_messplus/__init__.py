"""A LiteLLM proxy plugin that holds a promised share of satisfied requests at the lowest cost."""
