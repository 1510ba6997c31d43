"""Services of plugins for operators: HTTP resources, verbs of gatewayctl and panels of the web UI."""
