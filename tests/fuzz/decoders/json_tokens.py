"""Tokens of JSON for the dictionaries of targets that read it."""

from typing import Final

#: Punctuation, and values that decoders treat in different ways.
JSON_TOKENS: Final = (
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"',
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"NaN",
    b"\\ud800",
    b"\\u0000",
    b"99999999999999999999",
)
