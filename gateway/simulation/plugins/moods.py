"""The moods of plugins: in each call a plugin does its work, or has one of the faults that plugins have."""

from collections import defaultdict
from enum import Enum, auto
from random import Random
from typing import Any, Final

from gateway.kernel.plugin_times import CALL_LIMIT_S
from gateway.simulation.world.world import World

#: Times that a slow call takes, in seconds: within a turn, longer than one, and beyond the limit of a call.
_SLOW_S: Final = (0.003, 0.02, 1.5 * CALL_LIMIT_S)


#: The kind of the faults of event listeners.
LISTENER: Final = "plugin event listener"


class PluginMood(Enum):
    """The behaviour of a plugin in one call."""

    WORKS = auto()
    RAISES = auto()
    ANSWERS_NONSENSE = auto()
    IS_SLOW = auto()


class _Undescribed(Exception):
    """An exception that cannot be described."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class _Nonsense:
    """An object that is no answer to any call; shown without its address, which differs from run to run."""

    def __repr__(self) -> str:
        return "<nonsense>"


class PluginMoods:
    """Owns the mood of one plugin: while ``share`` is above zero, that share of its calls has a fault.

    ``caused`` counts the faults by kind that the node must have noticed since its start, and ``slow`` the calls beyond
    the limit, which it may have noticed: it times some calls only.
    """

    def __init__(self, world: World, random: Random) -> None:
        self.share = 0.0
        self.caused: dict[str, int] = defaultdict(int)
        self.slow: dict[str, int] = defaultdict(int)
        self._world = world
        self._random = random

    @property
    def attributed(self) -> int:
        """The faults since the node's start that it must have attributed to the plugin.

        An event listener may fail while it is told of another fault, which is counted only.
        """
        return sum(count for kind, count in self.caused.items() if kind != LISTENER)

    def forget(self) -> None:
        """Begin to count again: the node starts."""
        self.caused.clear()
        self.slow.clear()

    def next(self, kind: str, *, answers: bool = True) -> PluginMood:
        """Return the mood of a call, whose faults are of this kind; a slow call has passed already.

        :param answers: whether the call has an answer, which can be wrong.
        """
        if self._random.random() >= self.share:
            return PluginMood.WORKS
        faults = [PluginMood.RAISES, PluginMood.IS_SLOW, *([PluginMood.ANSWERS_NONSENSE] if answers else [])]
        return self.be(self._random.choice(faults), kind)

    def be(self, mood: PluginMood, kind: str) -> PluginMood:
        """Count a fault, and let a slow call pass; return the mood."""
        if mood is PluginMood.IS_SLOW:
            seconds = self._random.choice(_SLOW_S)
            self._world.spend(seconds)
            self.slow[kind] += seconds > CALL_LIMIT_S
        elif mood is not PluginMood.WORKS:
            self.caused[kind] += 1
        return mood

    def failure(self) -> BaseException:
        """Return an exception that a plugin may raise."""
        return self._random.choice((ValueError("no such order"), KeyError("price"), SystemExit(3), _Undescribed()))

    def nonsense(self) -> Any:  # Any: it stands for an answer of any type
        """Return what is no answer to any call."""
        return self._random.choice((None, 17, "yes", _Nonsense(), [None]))
