"""Code that every package may use and that imports none of them: the vocabulary of the log, errors,
counters, tasks, bounded maps, budgets, draws, and output to files and terminals."""
