"""The cost of a call: estimated before it, measured after it. Pure."""
