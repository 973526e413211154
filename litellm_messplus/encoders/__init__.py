"""Encoders that need more than numpy, their lookup by setting, and how they are run."""
