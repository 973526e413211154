"""The energy of a call in joules: measured next to the models, and fitted."""
