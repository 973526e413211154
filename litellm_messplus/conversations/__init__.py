"""The grouping of prompts into conversations, and the cost of holding one at a deployment. Pure."""
