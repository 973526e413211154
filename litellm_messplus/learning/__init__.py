"""What follows from the log and is written down beside it: verdicts, outcomes and sums."""
