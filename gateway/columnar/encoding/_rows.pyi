"""Types of ``_rows.c``; ``direct_rows.py`` documents the function."""

from typing import TypeAlias

#: Bitmap of the rows with a value (``None``: all), values or starts of texts, and texts.
Column: TypeAlias = tuple[bytes | None, bytes, bytes | None]
#: Distinct byte strings, and the number of each row.
Dictionary: TypeAlias = tuple[list[bytes], bytes]
#: Position of the next chunk, first offset, count, offsets, times in µs, bodies, names, tables, and properties.
Found: TypeAlias = tuple[int, int, int, bytes, bytes, Column, Dictionary, Dictionary, tuple[Column | None, ...]]

def read_rows(
    data: bytes, position: int, first: int, end: int, most_rows: int, most_bytes: int
) -> Found | tuple[()] | None: ...
