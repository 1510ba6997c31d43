"""Structured logging."""

from gateway.logs.formats import log_line
from gateway.logs.line_bounds import masked
from gateway.logs.structured import StructuredLog

__all__ = ["StructuredLog", "log_line", "masked"]
