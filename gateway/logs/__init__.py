"""Structured logging."""

from gateway.logs.line_bounds import masked
from gateway.logs.structured import Log

__all__ = ["Log", "masked"]
