"""docs/protocols/arguments.md: the program of the page, as written except for the port."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

from gateway import clients
from gateway.testing import Gateway

PAGE = Path(__file__).parents[3] / "docs" / "protocols" / "arguments.md"


def test_the_program_of_the_page_prints_one_message(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n# reminders.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with Gateway() as broker:
        here = 'pika.ConnectionParameters("localhost")'
        assert here in code
        (tmp_path / "reminders.py").write_text(code.replace(here, f'pika.URLParameters("{broker.amqp_url}")'))
        result = subprocess.run(
            [sys.executable, "reminders.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    assert (result.returncode, result.stdout, result.stderr) == (0, "tea\n", "")


def test_the_page_names_each_function_and_parameter() -> None:
    text = PAGE.read_text()
    for name in clients.__all__:
        assert f"`{name}(" in text
        for parameter in inspect.signature(getattr(clients, name)).parameters:
            assert re.search(rf"\b{parameter}\b", text), f"{name}: {parameter}"
