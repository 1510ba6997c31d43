"""``mypyc_attr``, which has no effect when the source is not compiled.

mypyc compiles the kernel to machine code. ``mypyc_attr`` allows interpreted classes, such as a test's, to derive from a
compiled one (``allow_interpreted_subclasses``); excludes a class from garbage collection because it is never part of a
cycle (``acyclic``); or reuses the memory of freed instances (``free_list_len``). The package with the real one comes
with mypy, which a running broker does not need.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from mypy_extensions import mypyc_attr as mypyc_attr
except ImportError:

    def mypyc_attr(*words: str, **attributes: object) -> "Callable[[type], type]":  # type: ignore[misc]
        """Return the class unchanged."""
        return lambda cls: cls
