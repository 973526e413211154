"""Encoders that need more than numpy, what finds them by their setting, and how they are run."""
