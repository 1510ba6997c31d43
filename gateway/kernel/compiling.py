"""A word for mypyc, which makes machine code of the kernel; to whoever runs the source it says nothing.

``mypyc_attr`` says of a class that ones which are not compiled, such as a test's, may derive from it
(``allow_interpreted_subclasses``); that no cycle goes through it, so that the collector need not know it (``acyclic``);
or that the memory of the last one to go is the next one's (``free_list_len``). The package that has it comes with mypy,
which a running broker does without.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    from mypy_extensions import mypyc_attr as mypyc_attr
except ImportError:

    def mypyc_attr(*words: str, **attributes: object) -> "Callable[[type], type]":  # type: ignore[misc]
        """Return the class as it is."""
        return lambda cls: cls
