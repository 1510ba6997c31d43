"""Structured logging."""

from gateway.logs.limits import masked
from gateway.logs.structured import Log

__all__ = ["Log", "masked"]
