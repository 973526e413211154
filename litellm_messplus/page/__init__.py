"""The page at `/messplus/ui`: static files without data, JSON routes that read a bounded part of
the database, and who may see it."""
