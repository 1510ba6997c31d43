"""Verbs for the running node: its settings, log, maintenance, TLS, plugins, and those of rabbitmqctl about clusters."""
