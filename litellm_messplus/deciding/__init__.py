"""What each candidate is expected to cost and satisfy, and the decision for one request. Pure."""
