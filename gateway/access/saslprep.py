"""SASLprep (RFC 4013): normalization of text, so that passwords match in any Unicode spelling."""

import stringprep
from collections.abc import Callable
from typing import Final
from unicodedata import ucd_3_2_0 as unicode_3_2

#: RFC 4013, 2.3 and 2.5: prohibited characters, including unassigned code points.
PROHIBITED: Final[tuple[Callable[[str], bool], ...]] = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def saslprep(text: str) -> str:
    """Return the prepared text. :raises ValueError: if it contains prohibited characters."""
    if text.isascii() and text.isprintable():
        return text
    prepared = unicode_3_2.normalize("NFKC", _mapped(text))
    for character in prepared:
        if any(table(character) for table in PROHIBITED):
            raise ValueError(f"U+{ord(character):04X} is prohibited")
    _check_direction(prepared)
    return prepared


def _mapped(text: str) -> str:
    """Replace non-ASCII spaces by a space and remove invisible characters (RFC 4013, 2.1)."""
    spaced = (" " if stringprep.in_table_c12(each) else each for each in text)
    return "".join(each for each in spaced if not stringprep.in_table_b1(each))


def _check_direction(text: str) -> None:
    """Refuse mixed directions: right-to-left text must start and end so and contain no other (RFC 3454, 6)."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    ends_so = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    if not ends_so or any(map(stringprep.in_table_d2, text)):
        raise ValueError("right-to-left and left-to-right characters are mixed")
