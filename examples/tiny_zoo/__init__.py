"""Three small language models of our own that answer the demonstration tasks."""
