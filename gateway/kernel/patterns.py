"""Patterns of names as operators write them: regular expressions that match anywhere unless anchored.

RabbitMQ reads them as PCRE, we with Python's ``re``; what the two read differently is refused when the pattern is set,
never when it is used. Patterns come from administrators: one that takes exponential time is theirs to avoid.
"""

import re
import warnings
from functools import lru_cache

from gateway.kernel.errors import PreconditionFailed

NOTHING = "^$"
"""What the empty pattern stands for: it matches no name that exists."""


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern, once for all who log in under it; the empty one matches nothing.

    :raises PreconditionFailed: when it is not a regular expression, or one that Python reads otherwise than PCRE.
    """
    with warnings.catch_warnings():
        # Python warns of "[[:alpha:]]" and the like, which it would take for a set of single characters.
        warnings.simplefilter("error", FutureWarning)
        try:
            return re.compile(pattern or NOTHING)
        except (re.error, FutureWarning, OverflowError) as error:
            raise PreconditionFailed(f"invalid regular expression '{pattern}': {error}") from None
