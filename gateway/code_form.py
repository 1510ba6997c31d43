"""The form of the code that this process runs: machine code for the hot modules, or all of it as Python source."""

from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Final

#: A module that every build with machine code compiles (``tool.gateway.compiled`` of pyproject.toml).
_HOT_MODULE: Final = "gateway.kernel.counters"

MACHINE_CODE: Final = "machine code"
SOURCE: Final = "source"


def code_form() -> str:
    """Return ``machine code`` if the modules that every message passes are compiled, else ``source``."""
    found = find_spec(_HOT_MODULE)
    origin = found.origin if found is not None and found.origin is not None else ""
    return MACHINE_CODE if origin.endswith(tuple(EXTENSION_SUFFIXES)) else SOURCE
