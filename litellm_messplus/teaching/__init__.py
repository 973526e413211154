"""Warm start: what is known of the models from elsewhere, put into the log as lessons."""
