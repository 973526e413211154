"""What a call costs: estimated before it, measured after it. Pure."""
