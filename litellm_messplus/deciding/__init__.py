"""The expected cost and satisfaction of each candidate, and the decision for one request. Pure."""
