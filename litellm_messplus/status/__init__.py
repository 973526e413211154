"""The figures of `messplus status` and `GET /messplus/status`: where each promise stands, and at
what cost. Every figure is computed from the tables, as `docs/evidence/status.md` shows."""
