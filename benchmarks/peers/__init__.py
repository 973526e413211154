"""This project and what would be used in its place, over the same recordings: the benchmark."""
