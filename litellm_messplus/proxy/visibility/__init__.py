"""What LiteLLM's own pages, logs and traces show of a decision."""
