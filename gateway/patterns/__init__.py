"""Regular expressions with linear matching time, for policies, permissions and list filters."""

from gateway.patterns.engine import LONGEST_PATTERN, compile_pattern, compile_pattern_caseless

__all__ = ["LONGEST_PATTERN", "compile_pattern", "compile_pattern_caseless"]
