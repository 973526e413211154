"""What every room may use, and which imports no room: the words of the log, errors, counters,
tasks, bounded maps, budgets, draws, and the forms of files and terminals."""
