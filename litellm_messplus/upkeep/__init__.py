"""Looking after a database: is what it says sound, and does the fold of it say the same?"""
