"""Changes of a running node by operators: settings, reloads, maintenance, the stop."""
