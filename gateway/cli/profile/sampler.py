"""Samples the stack of a running process with py-spy, from outside: the process needs no preparation."""

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from gateway.cli.programs import program_of
from gateway.kernel.errors import ConfigurationError

#: The formats of files that py-spy writes, by the suffix of their name.
FORMATS: Final = {".svg": "flamegraph", ".json": "speedscope"}

#: The format of the samples for the tables.
_COLLAPSED: Final = "raw"

#: A library of compiled modules has this in the name of its file.
_MACHINE_CODE: Final = "__mypyc"


class Sampler:
    """Takes samples of one process, ``rate`` in a second. Samples that do not hold the interpreter's lock are left out:
    threads that wait.

    :raises ConfigurationError: when py-spy is not installed.
    """

    def __init__(self, process_id: int, rate: int) -> None:
        self._program = program_of("profile", "py-spy")
        self._process_id = process_id
        self._rate = rate

    def collapsed(self, seconds: int) -> list[str]:
        """Take samples; return them as collapsed stacks. :raises ConfigurationError: when py-spy fails."""
        with tempfile.TemporaryDirectory(prefix="gateway-profile-") as directory:
            file = Path(directory) / "samples"
            self._record(seconds, _COLLAPSED, file)
            return file.read_text(errors="replace").splitlines()

    def write(self, seconds: int, file: Path) -> None:
        """Take samples, and write them to a file whose suffix is in ``FORMATS``.

        :raises ConfigurationError: when py-spy fails.
        """
        self._record(seconds, FORMATS[file.suffix], file)

    def _record(self, seconds: int, form: str, file: Path) -> None:
        options = {"pid": self._process_id, "duration": seconds, "rate": self._rate, "format": form, "output": file}
        words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
        command = [self._program, "record", "--gil", "--function", *words]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode or not file.exists():
            lines = [line for line in done.stdout.splitlines() if line.strip()]
            reason = lines[-1] if lines else f"it ended with {done.returncode}"
            raise ConfigurationError(
                f"py-spy cannot read process {self._process_id}: {reason}. "
                "Run this as root, or as the broker's user with kernel.yama.ptrace_scope = 0"
            )


def runs_machine_code(process_id: int) -> bool:
    """Return whether a process has loaded compiled modules of the gateway, as far as the system shows it."""
    try:
        return _MACHINE_CODE in Path(f"/proc/{process_id}/maps").read_text()
    except OSError:
        return False
