"""Whether every surface says the same of one log, and whether it is true."""
