"""What requests came to, added up: the one set of figures, and how they are written."""
