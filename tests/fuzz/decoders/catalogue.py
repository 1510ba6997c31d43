"""All targets by name."""

from collections.abc import Iterable
from typing import Final

from tests.fuzz.decoders.target import Target
from tests.fuzz.decoders.targets import (
    access,
    amqp,
    bodies,
    cluster,
    columns,
    connections,
    http,
    kernel,
    mqtt,
    net,
    plugins,
    recording,
    relayed,
    settings,
    stomp,
    store,
)

_MODULES: Final = (
    amqp,
    relayed,
    mqtt,
    stomp,
    connections,
    kernel,
    store,
    net,
    http,
    access,
    settings,
    plugins,
    bodies,
    columns,
    recording,
    cluster,
)

TARGETS: Final[dict[str, Target]] = {target.name: target for module in _MODULES for target in module.TARGETS}

#: The module of each target: the process of a target imports, and instruments, no other.
MODULE_OF: Final = {target.name: module.__name__ for module in _MODULES for target in module.TARGETS}


def chosen(names: Iterable[str]) -> list[Target]:
    """Return the targets whose names begin with one of these; all, if there are none."""
    wanted = tuple(names)
    return [target for target in TARGETS.values() if not wanted or target.name.startswith(wanted)]
