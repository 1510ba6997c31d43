"""The columnar worker of an installation without the library pyarrow: it answers each request with that reason.

:mod:`gateway.columnar.encoding.worker` describes the frames. Images without Arrow have this worker only.
"""

import os
import signal
import sys
from importlib.util import find_spec
from typing import BinaryIO, Final

from gateway.worker_process.framing import FrameReader, encode_frame

REASON: Final = "pyarrow is not installed"


def has_arrow() -> bool:
    """Return whether the library is installed, without loading it."""
    return find_spec("pyarrow") is not None


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the input ends."""
    reader = FrameReader()
    while data := os.read(requests.fileno(), 1 << 20):
        for request in reader.feed(data):
            answers.write(encode_frame({"id": request.head.get("id"), "error": REASON}))
        answers.flush()


def main() -> None:
    """Serve the broker on standard input and output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for the broker, which ends the worker by closing the pipe
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
