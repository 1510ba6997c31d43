"""Regular expressions with linear matching time, for policies, permissions and list filters."""

from gateway.patterns.engine import LONGEST_PATTERN, compile_pattern, compile_pattern_caseless
from gateway.patterns.searching import LONGEST_SEARCHED, Matches, compile_search, containing

__all__ = [
    "LONGEST_PATTERN",
    "LONGEST_SEARCHED",
    "Matches",
    "compile_pattern",
    "compile_pattern_caseless",
    "compile_search",
    "containing",
]
