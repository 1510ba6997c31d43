"""Workers that kill themselves by SIGKILL: forks of one process, which has imported what they need.

The process reads a line for each worker, with what it is to do. Its answer is a line: ``killed``, or what the worker
has answered.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.running import PROJECT


class KilledWorkers:
    """The process whose forks are workers: ``module`` calls ``serve``."""

    def __init__(self, module: str, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, str(directory)],
            cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
        )  # fmt: skip

    def ask(self, *words: object) -> str:
        """Let a worker do something; return its answer, or ``killed``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, sep=";", file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def serve(work: Callable[[Path, list[str]], object]) -> None:
    """Start a worker for each line of the input, and print what it returns, or its end.

    :param work: called in the worker with the directory and the words of the line.
    """
    directory = Path(sys.argv[1])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answer = work(directory, line.strip().split(";"))
            os.write(sys.stdout.fileno(), f"{answer}\n".encode())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print("killed", flush=True)
