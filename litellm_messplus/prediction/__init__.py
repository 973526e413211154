"""Prompt -> features -> probability of satisfaction, learned online. Pure."""
