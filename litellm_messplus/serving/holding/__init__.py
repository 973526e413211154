"""Conversations that are held: who serves one, and what the log tells of those of other workers."""
