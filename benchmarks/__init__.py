"""Measurements of the gateway; nothing in the product imports this package."""
