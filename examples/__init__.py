"""Worked examples that run without any paid provider."""
