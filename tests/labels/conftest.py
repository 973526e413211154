"""Deterministic property tests."""

from hypothesis import settings

settings.register_profile("labels", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("labels")
