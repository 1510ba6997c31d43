"""Reports about a move from another broker: ``gatewayctl migrate check``."""
