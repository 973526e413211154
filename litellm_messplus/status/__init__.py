"""What `messplus status` and `GET /messplus/status` say: whether the promise was kept, and at what
cost. Every figure is computed from the tables, as `docs/status.md` shows."""
