"""Small limits on the work of one turn: a few queues or messages are then worked on in slices, as very many are."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from random import Random
from types import ModuleType
from typing import Final

#: The modules whose limits these are: packages with all that is in them.
_PACKAGES: Final = ("gateway.kernel", "gateway_amqp", "gateway_stomp", "gateway_exchanges", "gateway_lmdb")

#: A module whose constant of one of the names below is no limit.
_OTHERS: Final = frozenset({"gateway_exchanges.weighted_slots"})

#: The values that each limit may have, by its name in the broker's modules. A step is not larger than what a turn does
#: at once, as usual.
_SMALL: Final[Mapping[str, Sequence[float]]] = {
    "MOST_QUEUES": (1, 2, 3),
    "MOST_AT_ONCE": (2, 3, 5),
    "_MOST_AT_ONCE": (0, 1, 3),
    "_MOST_OFFERS": (1, 2, 4),
    "_PARTS_AT_ONCE": (1, 2),
    "_SETTLED_AT_ONCE": (1, 2),
    "_STEP": (1, 2),
    "_AT_ONCE": (1, 2),
    "_FEW": (0, 1, 2),
    "_MOST_DUE": (1, 2),
    "AT_ONCE": (1, 3),
    "SLICE_S": (0.0, 0.0005, 0.005),
    "TURN_S": (0.0, 0.0005, 0.005),
}

#: The share of runs with small limits.
_SHARE: Final = 0.4


def chosen_limits(seed: int) -> dict[str, float]:
    """Return the small limits of the run of a seed, by name; none for the usual ones."""
    random = Random(f"{seed} limits")
    if random.random() >= _SHARE:
        return {}
    return {name: random.choice(values) for name, values in _SMALL.items()}


@contextmanager
def small_limits(limits: Mapping[str, float]) -> Iterator[None]:
    """Let these limits hold in the broker's modules, for the length of a run. Compiled code keeps the usual ones."""
    changed = [place for place in _places() if place[1] in limits]
    usual = [getattr(module, name) for module, name in changed]
    for module, name in changed:
        setattr(module, name, limits[name])
    try:
        yield
    finally:
        for (module, name), value in zip(changed, usual, strict=True):
            setattr(module, name, value)


@cache
def _places() -> Sequence[tuple[ModuleType, str]]:
    """Return each module that has a limit, with its name: a module that imports one has it too."""
    for package in _PACKAGES:
        for found in walk_packages(import_module(package).__path__, f"{package}."):
            import_module(found.name)
    modules = [
        module for name, module in sorted(sys.modules.items()) if name.startswith(_PACKAGES) and name not in _OTHERS
    ]
    return [(module, name) for module in modules for name in _SMALL if name in vars(module)]
