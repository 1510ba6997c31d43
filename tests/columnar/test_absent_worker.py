"""The columnar worker of an installation without pyarrow."""

import subprocess
import sys

import pytest

from gateway.archive import schemas
from gateway.columnar import absent
from gateway.worker_process.framing import FrameReader, encode_frame


def test_each_request_is_answered_with_the_reason_until_the_input_ends() -> None:
    requests = b"".join(encode_frame({"id": number, "do": "arrow"}, b"chunks") for number in range(3))
    ended = subprocess.run(
        [sys.executable, "-m", "gateway.columnar.absent"], input=requests, capture_output=True, timeout=30, check=True
    )
    heads = [frame.head for frame in FrameReader().feed(ended.stdout)]
    assert heads == [{"id": number, "error": "pyarrow is not installed"} for number in range(3)]
    assert ended.stderr == b""


@pytest.mark.parametrize(
    ("found", "module"),
    [(None, "gateway.columnar.absent"), ("found", "gateway.columnar.encoding.worker")],
    ids=["without pyarrow", "with pyarrow"],
)
def test_the_module_of_the_worker_depends_on_the_library(
    monkeypatch: pytest.MonkeyPatch, found: str | None, module: str
) -> None:
    monkeypatch.setattr(absent, "find_spec", lambda name: found)
    assert schemas.worker_module() == module
