"""The `messplus` command."""
