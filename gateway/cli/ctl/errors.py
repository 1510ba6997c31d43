"""Errors of verbs, with the exit codes of rabbitmqctl where it has one, else of ``sysexits.h``."""

from typing import ClassVar, Final

from gateway.cli.exits import DATA_ERROR, SOFTWARE, UNAVAILABLE, USAGE

NO_USER: Final = 67
"""There is no such user."""

TIMED_OUT: Final = 75
"""An event that a verb waits for did not happen in time."""

NOT_PERMITTED: Final = 77
"""The credentials are wrong, or the user lacks permission. RabbitMQ's command line has no code for it."""


class CommandFailed(Exception):
    """A verb failed: one line for the operator and an exit code for scripts."""

    exit_code: ClassVar[int] = SOFTWARE


class WrongUsage(CommandFailed):
    """The command line names something unknown: a verb, a column, a queue to delete."""

    exit_code = USAGE


class WrongData(CommandFailed):
    """The command's input is wrong: a file, a password, a virtual host."""

    exit_code = DATA_ERROR


class NoSuchVirtualHost(WrongData):
    """The virtual host does not exist or is not visible to the user."""

    def __init__(self, vhost: str) -> None:
        super().__init__(f"Virtual host '{vhost}' does not exist")


class NoSuchUser(CommandFailed):
    """There is no such user."""

    exit_code = NO_USER

    def __init__(self, user: str) -> None:
        super().__init__(f'User "{user}" does not exist')


class UserExists(CommandFailed):
    """The user to be added already exists."""

    exit_code = SOFTWARE

    def __init__(self, user: str) -> None:
        super().__init__(f'User "{user}" already exists')


class Declined(CommandFailed):
    """The broker refused the request, or a health check failed."""

    exit_code = UNAVAILABLE


class TimedOut(CommandFailed):
    """An event that a verb waits for did not happen in time."""

    exit_code = TIMED_OUT


#: The reasons of a 404 that do not say what is missing: those of the path, and that of an answer without a reason.
_NAMELESS: Final = frozenset({"Not Found", "vhost_not_found", "HTTP status 404"})


class UnknownEntity(Declined):
    """The broker answered 404. Verbs add the kind of the entity, unless the broker names it."""

    @property
    def is_named(self) -> bool:
        """Whether the broker names what is missing, which may be something else than what the verb acts on."""
        return str(self) not in _NAMELESS


class Unhealthy(Declined):
    """A health check failed; ``finding`` is the broker's answer."""

    def __init__(self, reason: str, finding: dict[str, object]) -> None:
        super().__init__(reason)
        self.finding = finding


class StillStarting(Declined):
    """The broker is still recovering its data. The message contains its progress."""


class BrokerUnreachable(CommandFailed):
    """The broker cannot be reached at its URL."""

    exit_code = UNAVAILABLE


class NotPermitted(CommandFailed):
    """The broker denied access to this user. ``reason`` is the broker's text."""

    exit_code = NOT_PERMITTED

    def __init__(self, user: str, reason: str) -> None:
        super().__init__(f"the broker refuses user '{user}': {reason}")
        self.reason = reason


class BrokerFailed(CommandFailed):
    """The answer is not one of the management API."""

    exit_code = SOFTWARE
