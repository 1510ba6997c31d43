"""The verbs of ``gatewayctl``, one module for each noun."""
