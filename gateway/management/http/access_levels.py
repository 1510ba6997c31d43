"""Access levels of the API, granted by user tags."""

from collections.abc import Set
from enum import Enum
from typing import Final

from gateway.management.http.errors import HttpError, forbidden

ADMINISTRATOR_TAG: Final = "administrator"


class AccessLevel(Enum):
    """An access level: the tags that grant it, and RabbitMQ's reason for a refusal."""

    PUBLIC = (frozenset[str](), "")
    USER = (frozenset[str](), "Login failed")
    MANAGEMENT = (frozenset({"management", "policymaker", "monitoring", ADMINISTRATOR_TAG}), "Not management user")
    POLICYMAKER = (frozenset({"policymaker", ADMINISTRATOR_TAG}), "User not authorised to access object")
    MONITORING = (frozenset({"monitoring", ADMINISTRATOR_TAG}), "Not monitor user")
    ADMINISTRATOR = (frozenset({ADMINISTRATOR_TAG}), "Not administrator user")

    def refusal(self, tags: Set[str]) -> HttpError | None:
        """Return the error for a user with these tags, or ``None`` if access is granted."""
        opening, reason = self.value
        if not opening or opening & tags:
            return None
        return forbidden(reason if AccessLevel.MANAGEMENT.value[0] & tags else AccessLevel.MANAGEMENT.value[1])
