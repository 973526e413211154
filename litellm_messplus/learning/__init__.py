"""What is derived from the log and stored next to it: verdicts, outcomes and sums."""
