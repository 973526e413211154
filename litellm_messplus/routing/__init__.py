"""The decision. Pure: numbers in, a decision out; no LiteLLM, no database, no clock."""
