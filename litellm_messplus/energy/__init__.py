"""The energy of a call in joules: measured next to the models, fitted, and followed in service."""
