"""Exit codes of the command lines: those of ``sysexits.h``, which RabbitMQ's command line uses too."""

from typing import Final

USAGE: Final = 64
"""The command line is wrong."""

DATA_ERROR: Final = 65
"""The configuration is wrong."""

UNAVAILABLE: Final = 69
"""The store cannot be opened."""

SOFTWARE: Final = 70
"""The broker failed."""

INTERRUPTED: Final = 130
"""The command was interrupted by Ctrl-C; shells use the same code."""
