"""From what served before to the router, in steps that can be undone: watch, canary, on."""
