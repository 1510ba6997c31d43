"""Tune the C library's memory allocator at the start, and return freed memory to the system on request.

Without glibc these functions do nothing: other allocators have no such calls.
"""

import ctypes
from typing import Any, Final

# parameters of mallopt(3)
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8

#: Blocks of this size and above are returned to the system as soon as they are freed. The threshold is set explicitly,
#: because glibc raises it to 32 MB after the first such block is freed, and then a body of 16 MB leaves a hole in the
#: heap.
LARGE_BLOCK: Final = 4 * 2**20

#: Bytes of free memory at the end of the heap that are kept for the next use.
_KEPT_AT_THE_END: Final = 32 * 2**20

#: The kernel's thread allocates nearly everything; each further arena has holes of its own.
_ARENAS: Final = 2


def _library() -> Any:  # Any: a C library has no types
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
    except OSError:
        return None


def tune_allocator() -> None:
    """Set the allocator's parameters. Call it once, before large amounts of memory are allocated."""
    library = _library()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, LARGE_BLOCK)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_AT_THE_END)
        library.mallopt(_ARENA_MAX, _ARENAS)


def trim_heap() -> None:
    """Return free pages to the system. This takes about 0.3 ms for each megabyte returned."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)
