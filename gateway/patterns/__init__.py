"""Regular expressions that match in time linear in the text: those of policies, permissions and filters of lists."""

from gateway.patterns.engine import LONGEST_PATTERN, compile_pattern, compile_pattern_caseless

__all__ = ["LONGEST_PATTERN", "compile_pattern", "compile_pattern_caseless"]
