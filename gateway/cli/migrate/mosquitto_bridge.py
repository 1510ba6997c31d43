"""Bridges of ``mosquitto.conf``: here they are parameters of a virtual host, set by a command."""

import json
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import Any, Final, TypeAlias

from gateway.cli.migrate.target import masked_line

Bridge: TypeAlias = Mapping[str, Sequence[str]]
"""The values of each option, in the order of the file; ``connection`` is the name."""

#: Options that the command contains.
_CARRIED: Final = frozenset(
    {
        *("connection", "address", "addresses", "topic", "remote_username", "username", "remote_password", "password"),
        *("remote_clientid", "clientid", "restart_timeout", "bridge_protocol_version", "bridge_cafile"),
    }
)

#: Options that change nothing with these values.
_DEFAULTS: Final = {"cleansession": "false", "start_type": "automatic", "bridge_insecure": "false"}


def bridge_comments(bridge: Bridge) -> Iterator[str]:
    """Yield the command of a bridge, then its options without an equivalent, one in each line."""
    name = bridge["connection"][0] or "bridge"
    parameter = json.dumps(_parameter(bridge), ensure_ascii=False)
    command = f"gatewayctl set_parameter mqtt-bridge {quote(name)} {quote(parameter)}"
    yield f"connection {name}: a bridge is a parameter; set it with: {command}"
    for option, values in bridge.items():
        for value in values:
            if option not in _CARRIED and _DEFAULTS.get(option) != value:
                yield f"connection {name}: {masked_line(f'{option} {value}')}: a bridge has no such key here"


def _parameter(bridge: Bridge) -> dict[str, Any]:
    """Return the value of the parameter."""
    parameter: dict[str, Any] = {"address": _addresses(bridge), "topics": list(bridge.get("topic", ["#"]))}
    if client_id := _first(bridge, "remote_clientid", "clientid"):
        parameter["client-id"] = client_id
    seconds = _first(bridge, "restart_timeout").split()
    if seconds and seconds[0].isascii() and seconds[0].isdecimal():
        parameter["reconnect-delay"] = int(seconds[0][:9])
    return parameter


def _addresses(bridge: Bridge) -> list[str]:
    user = _first(bridge, "remote_username", "username")
    login = f"{user}:PASSWORD@" if user else ""
    certificates = _first(bridge, "bridge_cafile")
    scheme = "mqtts" if certificates or "bridge_capath" in bridge else "mqtt"
    query = [f"cacertfile={certificates}"] if certificates else []
    if _first(bridge, "bridge_protocol_version") == "mqttv50":
        query.append("version=5")
    given = _first(bridge, "address", "addresses") or "HOST"
    return [f"{scheme}://{login}{address}{'?' if query else ''}{'&'.join(query)}" for address in given.split()]


def _first(bridge: Bridge, *options: str) -> str:
    """Return the first value of the first option that the bridge has; ``""`` if it has none."""
    return next((bridge[option][0] for option in options if option in bridge), "")
