"""Whether what an operator sets whole is within bounds: a virtual host, a user, a parameter.

Setting one checks this first. Definitions check all of theirs before the first is set.
"""

from collections.abc import Sequence
from typing import Final

from gateway.kernel.journal.records import ParameterRecord, UserRecord
from gateway.kernel.messages.bounds import require_arguments, require_name, require_parameter, require_text
from gateway.kernel.settings.limits import USER_LIMITS, require_valid_limits
from gateway.kernel.vhosts.queue_rules import require_known_type

#: Bytes in what is kept of a password.
LONGEST_HASH: Final = 1024


def require_valid_vhost(name: str, description: str, tags: Sequence[str], default_queue_type: str) -> None:
    """Refuse what no virtual host can be. :raises PreconditionFailed: naming what is wrong."""
    require_known_type(default_queue_type)
    require_name("vhost", name)
    require_text("description", description)
    for tag in tags:
        require_name("tag", tag)
    require_arguments(f"vhost '{name}'", {"tags": list(tags)})


def require_valid_user(user: UserRecord) -> None:
    """Refuse what no user can be. :raises PreconditionFailed: naming what is wrong."""
    require_name("user", user.name)
    require_text("password hash", user.password_hash, LONGEST_HASH)
    for tag in user.tags:
        require_name("tag", str(tag))
    require_arguments(f"user '{user.name}'", {"tags": user.tags})
    require_valid_limits("user-limits", USER_LIMITS, user.limits)


def require_valid_parameter(record: ParameterRecord) -> None:
    """Refuse a parameter that cannot be kept. :raises PreconditionFailed: naming what is wrong."""
    require_name("component", record.component)
    require_name("parameter", record.name)
    require_parameter(f"parameter '{record.name}'", record.value)
