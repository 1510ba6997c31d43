"""Structured logging."""

from gateway.logs.line_bounds import masked
from gateway.logs.structured import StructuredLog, log_line

__all__ = ["StructuredLog", "log_line", "masked"]
