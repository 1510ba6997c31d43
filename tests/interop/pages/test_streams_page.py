"""The programs of docs/streams.md, run unchanged."""

import re
import subprocess
import sys
from pathlib import Path

from tests.interop.broker import Broker

PAGE = Path(__file__).parents[3] / "docs" / "streams.md"
TIMEOUT_S = 20


def test_the_programs_of_the_page_write_and_read_a_stream(broker: Broker, tmp_path: Path) -> None:
    for program, name in re.findall(r"```python\n(# (\S+)\n.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / name).write_text(program.replace("127.0.0.1:5672", f"{broker.host}:{broker.port}"))
    written = subprocess.run(
        [sys.executable, tmp_path / "write.py"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    assert written.stdout == "written\n"
    for _ in range(2):
        with subprocess.Popen([sys.executable, tmp_path / "read.py"], stdout=subprocess.PIPE, text=True) as reader:
            assert reader.stdout is not None
            try:
                assert reader.stdout.readline() == "waiting\n"
                assert [reader.stdout.readline() for _ in range(3)] == [f"{n} reading {n}\n" for n in range(3)]
            finally:
                reader.kill()
