"""The gateway as its users start it; compiled if the benchmark runs with the compiled packages (`make bench`)."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.load.amqp.client import amqp_product
from benchmarks.load.processes import free_port
from benchmarks.load.running import Broker, running
from benchmarks.load.workloads import AMQP, MQTT, STOMP, WEB_STOMP
from gateway.code_form import MACHINE_CODE, code_form

#: The port of the management API, beside those of protocols.
MANAGEMENT: Final = "management"

#: Every listener that is enabled by default.
PROMETHEUS: Final = "prometheus"
LISTENERS: Final = (AMQP, MQTT, "web_mqtt", STOMP, WEB_STOMP, MANAGEMENT, PROMETHEUS)

#: The protocols and the management API.
MANAGED: Final = (AMQP, MQTT, STOMP, MANAGEMENT)

#: Deliveries an MQTT client may leave unacknowledged; the peer has the same setting.
PREFETCH: Final = 1000


def absence() -> str | None:
    """Return the reason why it cannot run, or None."""
    found = subprocess.run([sys.executable, "-m", "gateway", "--version"], capture_output=True, text=True, check=False)
    return None if found.returncode == 0 else f"`python -m gateway` does not run: {found.stderr.strip()[-200:]}"


@contextmanager
def launch(directory: Path) -> Iterator[Broker]:
    """Run it without management, like Debian's RabbitMQ."""
    with _launch(directory, AMQP, MQTT, STOMP, WEB_STOMP) as broker:
        yield broker


@contextmanager
def launch_managed(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """Run it with management, for measurements that use the API, and with some settings."""
    with _launch(directory, *MANAGED, options=_overrides(settings or {})) as broker:
        yield broker


@contextmanager
def launch_scraped(directory: Path) -> Iterator[Broker]:
    """Run it with AMQP and the metrics."""
    with _launch(directory, AMQP, PROMETHEUS) as broker:
        yield broker


@contextmanager
def launch_all(directory: Path, config: Path) -> Iterator[Broker]:
    """Run it with every listener that needs no certificate, and with a configuration file."""
    with _launch(directory, *LISTENERS, options=("--config", str(config))) as broker:
        yield broker


@contextmanager
def launch_with(directory: Path, settings: Mapping[str, str]) -> Iterator[Broker]:
    """Run it with AMQP alone and with some settings."""
    with _launch(directory, AMQP, options=_overrides(settings)) as broker:
        yield broker


def free_ports(*listeners: str) -> dict[str, int]:
    """Return a free port for each listener, by its name."""
    return {listener: free_port() for listener in listeners}


def command(
    directory: Path, ports: Mapping[str, int], options: Sequence[str] = (), known: Sequence[str] = LISTENERS
) -> list[str]:
    """Return the command that runs it with the data in this directory; all other known listeners are off."""
    settings = {"bind": "127.0.0.1", f"{MQTT}.prefetch": str(PREFETCH)}
    settings |= {f"{listener}.port": "off" for listener in known}
    settings |= {f"{listener}.port": str(port) for listener, port in ports.items()}
    data = ("--data", str(directory / "data"))
    return [sys.executable, "-m", "gateway", "run", *data, *options, *_overrides(settings)]


def _overrides(settings: Mapping[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]


@contextmanager
def _launch(directory: Path, *listeners: str, options: Sequence[str] = ()) -> Iterator[Broker]:
    ports = free_ports(*listeners)
    started = command(directory, ports, options)
    with running("gateway", started, os.environ, directory, ports, _product, timeout_s=60.0) as broker:
        yield broker


def _product(ports: Mapping[str, int]) -> str:
    """Return its name, version and build; both processes use the same Python."""
    return f"{amqp_product(ports)}, {'compiled' if code_form() == MACHINE_CODE else 'as source'}"
