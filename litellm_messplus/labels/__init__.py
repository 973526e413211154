"""Where satisfaction comes from beside the users' feedback: checks, a judge, what users do next.
Knows calls that have ended, neither LiteLLM nor the database."""
