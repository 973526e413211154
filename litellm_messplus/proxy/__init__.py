"""The only room that knows LiteLLM: hooks, exploration calls, routes, headers, prices."""
