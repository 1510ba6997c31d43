"""Structured logging."""

from gateway.logs.line_bounds import masked
from gateway.logs.structured import StructuredLog

__all__ = ["StructuredLog", "masked"]
