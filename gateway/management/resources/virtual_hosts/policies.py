"""/policies and /operator-policies: policies for queues and exchanges."""

from collections.abc import Set
from dataclasses import dataclass

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import arguments, digits, require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing, unknown_vhost
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import Fields, Reply, Routes, put_reply
from gateway.management.views.policies import policy_view

routes = Routes()


@dataclass(frozen=True, slots=True)
class PolicyRoutes:
    """The routes of the policies, or of the operator policies. ``noun`` and ``plural`` name them in the summaries.

    ``level`` is the access level of writes.
    """

    path: str
    noun: str
    plural: str
    level: AccessLevel
    is_operator: bool

    def declare(self, routes: Routes) -> None:
        """Add the routes."""

        def list_all(call: Call) -> Listing[PolicyRecord]:
            return self._listing(call, {vhost.name for vhost in call.visible_vhosts()})

        def list_in_vhost(call: Call, vhost: str) -> Listing[PolicyRecord]:
            return self._listing(call, {call.vhost(vhost).name})

        def show(call: Call, vhost: str, name: str) -> Fields:
            return with_columns(_view(call, self._existing(call, vhost, name)), call.query)

        def put(call: Call, vhost: str, name: str) -> Reply:
            return self._put(call, vhost, name)

        def delete(call: Call, vhost: str, name: str) -> None:
            call.broker.remove_policy(self._existing(call, vhost, name))

        list_all.__doc__ = f"List the {self.plural} of all virtual hosts that the user may see."
        list_in_vhost.__doc__ = f"List the {self.plural} of a virtual host."
        show.__doc__ = f"Return {self.noun}."
        put.__doc__ = f"Set {self.noun}, which applies at once."
        delete.__doc__ = f"Remove {self.noun}."
        one = f"{self.path}/<vhost>/<name>"
        routes.get(self.path)(list_all)
        routes.get(f"{self.path}/<vhost>")(list_in_vhost)
        routes.get(one)(show)
        routes.put(one, level=self.level)(put)
        routes.delete(one, level=self.level)(delete)

    def _listing(self, call: Call, vhosts: Set[str]) -> Listing[PolicyRecord]:
        found = call.broker.policies.values()
        chosen = [each for each in found if each.vhost in vhosts and each.is_operator == self.is_operator]
        return Listing(
            chosen, lambda policy: _view(call, policy), lambda policy: (policy.vhost, policy.name), is_paged=False
        )

    def _existing(self, call: Call, vhost: str, name: str) -> PolicyRecord:
        call.vhost(vhost)
        policy = call.broker.policies.get((vhost, name, self.is_operator))
        if policy is None:
            raise missing()
        return policy

    def _put(self, call: Call, vhost: str, name: str) -> Reply:
        if vhost not in call.broker.vhost_by_name:
            raise unknown_vhost()
        call.vhost(vhost)
        existed = (vhost, name, self.is_operator) in call.broker.policies
        call.broker.put_policy(policy_of(vhost, name, call.fields, is_operator=self.is_operator))
        return put_reply(existed)


def _view(call: Call, policy: PolicyRecord) -> Fields:
    return policy_view(policy, call.broker.vhost(policy.vhost).policies.fault(policy))


def policy_of(vhost: str, name: str, fields: Fields, *, is_operator: bool) -> PolicyRecord:
    """Return the policy in a request. :raises HttpError: if a field has the wrong type."""
    pattern, _ = require(fields, "pattern", "definition")
    priority, apply_to = fields.get("priority", 0), fields.get("apply-to", "all")
    if isinstance(priority, str) and (typed := digits(priority)) is not None:
        priority = typed  # some tools send a string
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise bad_request(f'Validation failed\n\npriority should be a number, actually was <<"{priority}">>\n')
    if not isinstance(pattern, str) or not isinstance(apply_to, str):
        raise bad_request("Validation failed\n\npattern and apply-to should be strings\n")
    return PolicyRecord(vhost, name, is_operator, pattern, apply_to, priority, arguments(fields, "definition"))


PolicyRoutes("/policies", "a policy", "policies", AccessLevel.POLICYMAKER, is_operator=False).declare(routes)
PolicyRoutes(
    "/operator-policies", "an operator policy", "operator policies", AccessLevel.ADMINISTRATOR, is_operator=True
).declare(routes)
