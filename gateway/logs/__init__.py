"""Structured logging."""

from gateway.logs.structured import Log

__all__ = ["Log"]
