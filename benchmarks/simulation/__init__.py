"""Made-up sessions of agents: what holding them on a model would save. No measurement."""
