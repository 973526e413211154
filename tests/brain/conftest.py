"""Databases of both kinds."""

from tests.support.both_databases import either, either_url, server

__all__ = ["either", "either_url", "server"]
