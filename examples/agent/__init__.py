"""An agent with two tools that asks models of our own, held and not held on one of them."""
