"""Maintenance of a database: checking it, removing data, and importing data from elsewhere."""
