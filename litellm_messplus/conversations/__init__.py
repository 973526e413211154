"""Which prompts belong together, and what holding them on one deployment costs. Pure."""
