"""What a call costs in joules: measured next to the models, fitted, and followed in service."""
