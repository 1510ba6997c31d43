"""Why a verb failed, and the exit code that tells scripts: rabbitmqctl's where it has one, else that of sysexits.h."""

from typing import ClassVar, Final

from gateway.cli.exits import DATA_ERROR, SOFTWARE, UNAVAILABLE, USAGE

NO_USER: Final = 67
"""There is no such user."""

NOT_PERMITTED: Final = 77
"""The credentials are wrong, or their user may not do this. RabbitMQ's command line has no code for it."""


class CommandFailed(Exception):
    """A verb did not do what was asked: one line for the operator and an exit code for scripts."""

    exit_code: ClassVar[int] = SOFTWARE


class WrongUsage(CommandFailed):
    """The command line asks for something that is not there: a verb, a column, a queue to delete."""

    exit_code = USAGE


class WrongData(CommandFailed):
    """What the command was given to work with is wrong: a file, a password, a virtual host."""

    exit_code = DATA_ERROR


class NoSuchVirtualHost(WrongData):
    """There is no such virtual host, or it is not visible to the user who asks."""

    def __init__(self, vhost: str) -> None:
        super().__init__(f"Virtual host '{vhost}' does not exist")


class NoSuchUser(CommandFailed):
    """There is no such user."""

    exit_code = NO_USER

    def __init__(self, user: str) -> None:
        super().__init__(f'User "{user}" does not exist')


class UserExists(CommandFailed):
    """The user that was to be added is there."""

    exit_code = SOFTWARE

    def __init__(self, user: str) -> None:
        super().__init__(f'User "{user}" already exists')


class Declined(CommandFailed):
    """The broker, or a check of its health, said no."""

    exit_code = UNAVAILABLE


class UnknownEntity(Declined):
    """The broker knows no such thing. Verbs say of what kind it is."""


class Unhealthy(Declined):
    """A health check failed; ``finding`` is what the broker said of it."""

    def __init__(self, reason: str, finding: dict[str, object]) -> None:
        super().__init__(reason)
        self.finding = finding


class StillStarting(Declined):
    """The broker recovers its data and serves no requests yet. The message says how far it is."""


class BrokerUnreachable(CommandFailed):
    """Nobody answers at the broker's URL."""

    exit_code = UNAVAILABLE


class NotPermitted(CommandFailed):
    """The broker does not let this user do this. ``reason`` is the broker's own word."""

    exit_code = NOT_PERMITTED

    def __init__(self, user: str, reason: str) -> None:
        super().__init__(f"the broker refuses user '{user}': {reason}")
        self.reason = reason


class BrokerFailed(CommandFailed):
    """The broker answered, but not as the management API does."""

    exit_code = SOFTWARE
