"""Masks secrets in the bytes of clients, in place: each byte of a secret becomes an ``x``."""
