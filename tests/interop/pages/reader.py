"""A reader, who follows pages from top to bottom and pastes each block."""

import json
import os
import re
import subprocess
import sys
import threading
import tomllib
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote
from urllib.request import Request, urlopen

from tests.interop.pages.blocks import Block, blocks
from tests.running import HOST, Gateway

TIMEOUT_S: Final = 100

#: The usual ports, as the pages name them.
PORTS: Final = {"amqp": 5672, "mqtt": 1883, "stomp": 61613, "management": 15672, "web_mqtt": 15675, "prometheus": 15692}

#: How a block begins that installs something, or starts the broker: what these need is there, and it runs.
PREPARATIONS: Final = ("make ", "pip install", "apt-get install", "source .venv/bin/activate")

#: What a fragment of a program finds: its page says that it needs a channel, and what ``show`` is.
_BEFORE_FRAGMENTS: Final = """\
import pika

connection = pika.BlockingConnection(pika.URLParameters("amqp://127.0.0.1:5672"))
channel = connection.channel()
channel.confirm_delivery()
channel.basic_qos(prefetch_count=100)
show = print

"""


class Reader:
    """Owns a directory with the programs of the pages, and those that run, by terminal.

    ``plugins`` is the broker's ``plugins_dir``, if a page has a plugin; ``ports`` maps further ports that pages name to
    those that are used.
    """

    def __init__(
        self, gateway: Gateway, directory: Path, plugins: Path | None = None, ports: Mapping[int, int] | None = None
    ) -> None:
        self._gateway = gateway
        self._directory = directory
        self._plugins = plugins
        self._ports = {usual: gateway.addresses[listener][1] for listener, usual in PORTS.items()} | dict(ports or {})
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._shown: set[str] = set()
        self._printed = ""
        self._environment = self._terminal()

    def follow(self, page: Path) -> None:
        """Paste the blocks of a page. :raises AssertionError: for the first that does not do what the page says."""
        self._printed = ""
        self._shown.clear()
        try:
            for block in blocks(page):
                self._follow(block)
            silent = sorted(set(self._running) - self._shown)
            assert not silent, f"{page.name} does not show what {', '.join(silent)} prints"
        finally:
            for program in self._running.values():
                end(program)
            self._running.clear()

    def _follow(self, block: Block) -> None:
        match block.language:
            case "python" if "hookimpl" in block.text and block.name:
                assert self._plugins is not None
                with (self._plugins / block.name).open("a" if ", " in block.text.partition("\n")[0] else "w") as file:
                    file.write(block.text)
            case "python" if block.name.startswith("test_") or block.name == "conftest.py":
                (self._directory / block.name).write_text(block.text)
            case "python" if block.name:
                self._run_program(block)
            case "python" if "channel." in block.text:
                self._run(block, [sys.executable, "-c", self._here(_BEFORE_FRAGMENTS + block.text)])
            case "toml" if block.name == "gateway.toml":
                self._enable(tomllib.loads(block.text))
            case "sh" if block.about:
                self._start(block, block.about, ["bash", "-c", f"exec {self._here(block.text)}"])
            case "sh" | "console":
                self._paste(block)
            case "output" if block.about:
                self._compare(block)
            case "output":
                assert self._printed == block.text, f"{block.place}: it prints {self._printed!r}"

    def _run_program(self, block: Block) -> None:
        """Save a program and run it; one that prints ``waiting`` goes on in a terminal of its own."""
        (self._directory / block.name).write_text(self._here(block.text))
        command = [sys.executable, block.name]
        if 'print("waiting"' in block.text:
            self._start(block, block.name, command)
        else:
            self._run(block, command)

    def _start(self, block: Block, terminal: str, command: list[str]) -> None:
        """Start a command that goes on, and wait until it prints ``waiting``."""
        program = subprocess.Popen(
            command,
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running[terminal] = program
        self._read(block, program, until="waiting\n")

    def _read(self, block: Block, program: subprocess.Popen[str], until: str = "") -> str:
        """Return the next line that a program prints, or the line ``until``; one that prints nothing is ended."""
        limit = threading.Timer(TIMEOUT_S, program.kill)
        limit.start()
        try:
            assert program.stdout is not None
            line = program.stdout.readline()
            while until and line not in ("", until):
                line = program.stdout.readline()
        finally:
            limit.cancel()
        assert line, f"{block.place}: the program ended, or printed nothing for {TIMEOUT_S} s"
        return line

    def _compare(self, block: Block) -> None:
        """Compare what a running program prints with an ``output`` block."""
        program = self._running[block.about]
        printed = "".join(self._read(block, program) for _ in block.text.splitlines())
        assert printed == block.text, f"{block.place}: {block.about} prints {printed!r}"
        self._shown.add(block.about)

    def _paste(self, block: Block) -> None:
        lines = [line for line in self._here(block.commands).splitlines() if not line.startswith(PREPARATIONS)]
        if lines:
            self._run(block, ["bash", "-e", "-c", "\n".join(lines)])

    def _run(self, block: Block, command: list[str]) -> None:
        ended = subprocess.run(
            command,
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ended.returncode == 0, f"{block.place}: it ends with {ended.returncode}:\n{ended.stdout}{ended.stderr}"
        self._printed = ended.stdout

    def _enable(self, settings: dict[str, dict[str, dict[str, dict[str, object]]]]) -> None:
        """Enable the plugins that an example of a configuration enables in the virtual host ``/``."""
        login = b64encode(b"guest:guest").decode()
        for name, given in settings.get("vhosts", {}).get("/", {}).get("plugins", {}).items():
            host, port = self._gateway.addresses["management"]
            request = Request(
                f"http://{host}:{port}/api/plugins/%2F/{quote(name)}",
                json.dumps(given).encode(),
                {"Authorization": f"Basic {login}", "Content-Type": "application/json"},
                method="PUT",
            )
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                assert answer.status < 300

    def _here(self, text: str) -> str:
        """Return a block for this broker: its ports, and its directory of plugins."""
        amqp = self._gateway.addresses["amqp"][1]
        text = text.replace("BlockingConnection()", f"BlockingConnection(pika.ConnectionParameters(port={amqp}))")
        text = text.replace('ConnectionParameters("localhost")', f'ConnectionParameters("{HOST}", {amqp})')
        text = re.sub(r"amqp://localhost(?!:)", f"amqp://{HOST}:{amqp}", text)
        for usual, port in self._ports.items():
            text = re.sub(rf"\b{usual}\b", str(port), text)
        return text.replace("/etc/gateway/plugins", str(self._plugins))

    def _terminal(self) -> dict[str, str]:
        """Return the environment of a terminal with the gateway's environment active."""
        settings = self._directory / ".config"
        settings.mkdir(parents=True, exist_ok=True)
        for program in ("mosquitto_pub", "mosquitto_sub", "mosquitto_rr"):
            (settings / program).write_text(f"-h {HOST}\n-p {self._gateway.addresses['mqtt'][1]}\n")
        host, port = self._gateway.addresses["management"]
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self._directory),
            "LANG": "C.UTF-8",
            "GATEWAYCTL_URL": f"http://{host}:{port}",
            **self._variables(),
        }

    def _variables(self) -> dict[str, str]:
        """Return the variables by which the examples take other addresses."""
        amqp, mqtt, stomp = (self._gateway.addresses[listener][1] for listener in ("amqp", "mqtt", "stomp"))
        return {
            "AMQP_URL": f"amqp://{HOST}:{amqp}",
            "MQTT_PORT": str(mqtt),
            "STOMP_PORT": str(stomp),
            "DASHBOARD_PORT": str(self._ports.get(8000, 8000)),
        }


def end(program: subprocess.Popen[str]) -> None:
    """End a program, and wait for its end."""
    with program:
        program.kill()
