"""The rights of users to use topics, as an administrator grants and revokes them."""

from enum import Enum, auto
from typing import Final

from gateway.simulation.programs.administrator import Administrator
from gateway.simulation.topology import TOPICS

_ALL: Final = ".*"
_NONE: Final = "^$"


class Rights(Enum):
    """The rights of a user."""

    ALL = auto()
    NO_WRITE = auto()
    NO_READ = auto()
    NO_TOPIC = auto()

    @property
    def may_publish(self) -> bool:
        """Whether the user may publish to topics."""
        return self in (Rights.ALL, Rights.NO_READ)

    @property
    def may_subscribe(self) -> bool:
        """Whether the user may subscribe to topics: a subscription needs the right to write to its queue too."""
        return self is Rights.ALL


async def create_user(administrator: Administrator, user: str) -> None:
    """Create a user with all rights, whose password is its name."""
    await administrator.put("users", user, fields={"password": user, "tags": ""})
    await grant(administrator, user, Rights.ALL)


async def grant(administrator: Administrator, user: str, rights: Rights) -> None:
    """Let a user have these rights, and no others, from the return on."""
    write = _NONE if rights is Rights.NO_WRITE else _ALL
    read = _NONE if rights is Rights.NO_READ else _ALL
    await administrator.permit(user, _ALL, write, read)
    if rights is Rights.NO_TOPIC:
        fields = {"exchange": TOPICS, "write": "^none$", "read": "^none$"}
        await administrator.put("topic-permissions", "/", user, fields=fields)
    else:
        await administrator.delete("topic-permissions", "/", user)
