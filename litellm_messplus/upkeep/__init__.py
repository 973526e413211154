"""Looking after a database: is it sound, what leaves it, and what comes in from elsewhere."""
