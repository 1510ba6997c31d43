"""The lines that a broker prints when it is ready: its listeners, and first commands to try."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from gateway.net.listeners import address_text
from gateway.node.command_path import command_path
from gateway.version import VERSION

#: The port that the commands use without ``--url``.
_USUAL_PORT: Final = 15672

_EVERY_INTERFACE: Final = ("0.0.0.0", "::", "*")


def announcement(addresses: Mapping[str, tuple[str, int]], data: Path) -> str:
    """Return the lines; ``addresses`` are those of the listeners by name."""
    lines = [f"gateway {VERSION} is running, data in {data}"]
    lines += [f"  {name:<10} {address_text(address)}" for name, address in addresses.items()]
    if "management" in addresses:
        url = _url_option(*addresses["management"])
        lines.append("Try it, from another terminal:")
        lines += [f"  {command_path('gateway')} quickstart{url}", f"  {command_path('gatewayctl')} list_queues{url}"]
    return "\n".join(lines)


def _url_option(host: str, port: int) -> str:
    """Return the option that names the management API, ``""`` if the commands find it without."""
    host = "127.0.0.1" if host in _EVERY_INTERFACE else host
    if (host, port) == ("127.0.0.1", _USUAL_PORT):
        return ""
    return f" --url http://{address_text((host, port))}"
