"""The standing of one node in all elections in which it takes part, as its record shows it."""

from gateway.cluster.leadership.member import Role
from gateway.cluster.leadership.members import Members
from gateway.cluster.queue_log import QueueId


class Standing:
    """The roles of a node by log. Its record has the highest of them, and whether it stands in all elections."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._roles: dict[QueueId, Role] = {}
        self._eligible: dict[QueueId, bool] = {}

    def show(self, log: QueueId, role: Role, *, is_eligible: bool) -> None:
        """Note the role in one election, and change the record of this node if it differs."""
        self._roles[log], self._eligible[log] = role, is_eligible
        highest, is_everywhere_eligible = self._highest(), all(self._eligible.values())
        own = self._members.own
        if own.role is not highest or own.is_eligible is not is_everywhere_eligible:
            self._members.show(highest, is_everywhere_eligible)

    def led_besides(self, log: QueueId) -> int:
        """Return how many other logs this node leads, or may lead soon: those before this one that it stands for."""
        others = [(each, role) for each, role in self._roles.items() if each != log]
        return sum(role is Role.LEADER or (role is Role.CANDIDATE and each < log) for each, role in others)

    def _highest(self) -> Role:
        roles = self._roles.values()
        return next((role for role in (Role.LEADER, Role.CANDIDATE) if role in roles), Role.FOLLOWER)
