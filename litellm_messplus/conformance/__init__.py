"""What every encoder and every head must do, to be run on yours as on ours (after river's)."""
