"""Replays of a recorded zoo through the serving engine: the cost, and the share satisfied."""
