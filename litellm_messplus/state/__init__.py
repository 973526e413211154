"""State as a fold of the log: records, in log order, into predictor, queues and estimates."""
