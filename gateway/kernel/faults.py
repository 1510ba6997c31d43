"""Unexpected exceptions that were contained: counted by kind, and reported as an event with their source location.

A fault affects only the operation that failed: a timer is set again, a turn ends, a message that could not be routed
counts as unroutable.

Calls into plugins are guarded with ``except BaseException``: a plugin may call ``sys.exit`` or raise a cancelled task's
exception, and neither may stop the broker. Signals do not raise exceptions here.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final

from gateway.kernel.events import Event, Events
from gateway.kernel.plugin_times import CALL_LIMIT_S, Overrun

#: The name of the event that reports a fault.
FAULT: Final = "fault.contained"

#: The maximum length of an exception's description, in characters.
_LONGEST_DESCRIPTION: Final = 300

#: Modules of the gateway itself; built-in plugins have other package names.
_OWN: Final = ("gateway.",)


class Faults:
    """Counts the contained exceptions of one node, and emits an event for each.

    ``plugin_of`` returns the plugin that supplies a component of a virtual host: an exchange type, by its name, or an
    object; ``""`` if unknown. ``processor_wait_s`` returns for how long the kernel's thread waited for a processor
    lately: a call that is long because other processes kept the machine busy is not a fault of the plugin.
    """

    def __init__(self, events: Events, plugin_of: Callable[[str, object], str] = lambda vhost, part: "") -> None:
        self._events = events
        self.plugin_of = plugin_of
        self.processor_wait_s: Callable[[], float] = lambda: 0.0
        self._is_telling = False
        self.count_by_kind: dict[str, int] = {}

    @property
    def total(self) -> int:
        """The number of contained exceptions of all kinds since the start."""
        return sum(self.count_by_kind.values())

    def contain(
        self, kind: str, error: BaseException, *, vhost: str = "", subject: str = "", **details: object
    ) -> None:
        """Count an exception, and report what failed, where and why.

        ``kind`` is the operation that failed: ``route``, ``timer``, ``tracer`` and so on.
        """
        if isinstance(error, Overrun) and error.seconds - self.processor_wait_s() <= CALL_LIMIT_S:
            return
        self.count_by_kind[kind] = self.count_by_kind.get(kind, 0) + 1
        if self._is_telling:  # a listener of the fault event raised as well
            return
        fields = {"kind": kind, **details, "error": described(error)}
        fields.setdefault("place", place_of(error))
        self._is_telling = True
        try:
            self._events.emit(Event(FAULT, vhost, subject, fields))
        finally:
            self._is_telling = False

    def cause(self, what: str, vhost: str, *parts: object) -> str:
        """Return the cause of a long turn, with the plugins that supply these components and the virtual host."""
        plugins = dict.fromkeys(filter(None, [self.plugin_of(vhost, part) for part in parts]))
        return ", ".join([what, *(f"plugin '{plugin}'" for plugin in plugins), f"vhost '{vhost}'"])

    def contain_in_type(
        self, kind: str, error: BaseException, vhost: str, exchange: str, type: str, function: object
    ) -> None:
        """Contain an exception from the ``function`` of an exchange type, or from checking its result."""
        plugin, place = self.plugin_of(vhost, type), place_of(error, function)
        self.contain(kind, error, vhost=vhost, subject=exchange, plugin=plugin, exchange_type=type, place=place)

    def contain_in_part(
        self,
        kind: str,
        error: BaseException,
        vhost: str,
        part: object,
        subject: str = "",
        name: str = "",
        function: object = None,
    ) -> None:
        """Contain an exception from an object that a plugin supplies, such as a tracer or an authenticator.

        The report has the ``name`` of the part, by default that of its class. ``function`` was called, for an exception
        without a traceback.
        """
        shown_name = name or type(part).__qualname__
        plugin = self.plugin_of(vhost, part)
        place = place_of(error, function)
        self.contain(kind, error, vhost=vhost, subject=subject, plugin=plugin, part=shown_name, place=place)


class BadAnswer(Exception):
    """A plugin returned a value that its hook's specification does not allow."""


def described(error: BaseException) -> str:
    """Return the type and text of an exception, bounded in length; only the type if its text cannot be built."""
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # an exception of a plugin may fail to describe itself
        return name
    if isinstance(error, BadAnswer):
        return text[:_LONGEST_DESCRIPTION]
    return f"{name}: {text}"[:_LONGEST_DESCRIPTION] if text else name


def shown(answer: object) -> str:
    """Return a short description of a wrong result; only its type if its ``repr`` raises."""
    try:
        return repr(answer)[:100]
    except BaseException:  # an object of a plugin may fail to describe itself
        return f"<{type(answer).__name__}>"


def place_of(error: BaseException, function: object = None) -> str:
    """Return file and line of the fault: the innermost frame in the plugin's file, or the innermost of all.

    Without a plugin frame in the traceback, it is the definition of ``function``, whose result was wrong.
    """
    frames = list(_frames(error.__traceback__))
    outside = [frame for frame in frames if not frame[0].startswith(_OWN)]
    if outside:
        own = [frame for frame in outside if frame[1] == outside[0][1]]
        return f"{own[-1][1]}:{own[-1][2]}"
    code = getattr(function, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    return f"{frames[-1][1]}:{frames[-1][2]}" if frames else ""


def _frames(traceback: TracebackType | None) -> "list[tuple[str, str, int]]":
    """Return module, file and line of each frame, the outermost first."""
    frames = []
    while traceback is not None:
        frame = traceback.tb_frame
        frames.append((str(frame.f_globals.get("__name__", "")), frame.f_code.co_filename, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frames
