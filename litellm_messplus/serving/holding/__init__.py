"""Held conversations: the deployment that serves each, also for those of other workers."""
