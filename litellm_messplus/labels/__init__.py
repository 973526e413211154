"""Sources of satisfaction labels other than user feedback: checks, a judge, the user's next
request. They see calls that have ended, and neither LiteLLM nor the database."""
