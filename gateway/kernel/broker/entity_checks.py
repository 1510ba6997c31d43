"""Validation of virtual hosts, users and parameters that an operator sets.

Each is checked before it is set. An import of definitions checks all of them before it sets the first.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from gateway.kernel.journal.records.access import UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.bounds import require_arguments, require_name, require_parameter, require_text
from gateway.kernel.settings.limits import USER_LIMITS, require_valid_limits
from gateway.kernel.vhosts.queue_rules import require_known_type

ParameterCheck: TypeAlias = Callable[[ParameterRecord], None]
"""Validates the parameters of one component; raises ``PreconditionFailed`` with RabbitMQ's text."""

#: The maximum size of a password hash, in bytes.
LONGEST_HASH: Final = 1024


def require_valid_vhost(name: str, description: str, tags: Sequence[str], default_queue_type: str) -> None:
    """Validate a virtual host's metadata. :raises PreconditionFailed: naming the invalid field."""
    require_known_type(default_queue_type)
    require_name("vhost", name)
    require_text("description", description)
    for tag in tags:
        require_name("tag", tag)
    require_arguments(f"vhost '{name}'", {"tags": list(tags)})


def require_valid_user(user: UserRecord) -> None:
    """Validate a user. :raises PreconditionFailed: naming the invalid field."""
    require_name("user", user.name)
    require_text("password hash", user.password_hash, LONGEST_HASH)
    for tag in user.tags:
        require_name("tag", str(tag))
    require_arguments(f"user '{user.name}'", {"tags": user.tags})
    require_valid_limits("user-limits", USER_LIMITS, user.limits)


def require_valid_parameter(record: ParameterRecord) -> None:
    """Validate a runtime parameter. :raises PreconditionFailed: naming the invalid field."""
    require_name("component", record.component)
    require_name("parameter", record.name)
    require_parameter(f"parameter '{record.name}'", record.value)
