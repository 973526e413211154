"""Maintenance of a database: checking it, and removing data."""
