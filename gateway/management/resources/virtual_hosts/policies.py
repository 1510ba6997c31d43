"""/policies and /operator-policies: policies for queues and exchanges."""

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import arguments, digits, require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing, unknown_vhost
from gateway.management.http.listing import Listing, with_columns
from gateway.management.http.routes import Fields, Reply, Routes, put_reply
from gateway.management.views.policies import policy_view

routes = Routes()


@routes.get("/policies")
def policies(call: Call) -> Listing[PolicyRecord]:
    """List the policies of all virtual hosts that the user may see."""
    return _listing(call, [vhost.name for vhost in call.visible_vhosts()], is_operator=False)


@routes.get("/policies/<vhost>")
def in_vhost(call: Call, vhost: str) -> Listing[PolicyRecord]:
    """List the policies of a virtual host."""
    return _listing(call, [call.vhost(vhost).name], is_operator=False)


@routes.get("/policies/<vhost>/<name>")
def policy(call: Call, vhost: str, name: str) -> Fields:
    """Return a policy."""
    return with_columns(_view(call, _existing(call, vhost, name, is_operator=False)), call.query)


@routes.put("/policies/<vhost>/<name>", level=AccessLevel.POLICYMAKER)
def put_policy(call: Call, vhost: str, name: str) -> Reply:
    """Set a policy, which applies at once."""
    return _put(call, vhost, name, is_operator=False)


@routes.delete("/policies/<vhost>/<name>", level=AccessLevel.POLICYMAKER)
def delete_policy(call: Call, vhost: str, name: str) -> None:
    """Remove a policy."""
    call.broker.remove_policy(_existing(call, vhost, name, is_operator=False))


@routes.get("/operator-policies")
def operator_policies(call: Call) -> Listing[PolicyRecord]:
    """List the operator policies of all virtual hosts that the user may see."""
    return _listing(call, [vhost.name for vhost in call.visible_vhosts()], is_operator=True)


@routes.get("/operator-policies/<vhost>")
def operator_in_vhost(call: Call, vhost: str) -> Listing[PolicyRecord]:
    """List the operator policies of a virtual host."""
    return _listing(call, [call.vhost(vhost).name], is_operator=True)


@routes.get("/operator-policies/<vhost>/<name>")
def operator_policy(call: Call, vhost: str, name: str) -> Fields:
    """Return an operator policy."""
    return with_columns(_view(call, _existing(call, vhost, name, is_operator=True)), call.query)


@routes.put("/operator-policies/<vhost>/<name>", level=AccessLevel.ADMINISTRATOR)
def put_operator_policy(call: Call, vhost: str, name: str) -> Reply:
    """Set an operator policy, which applies at once."""
    return _put(call, vhost, name, is_operator=True)


@routes.delete("/operator-policies/<vhost>/<name>", level=AccessLevel.ADMINISTRATOR)
def delete_operator_policy(call: Call, vhost: str, name: str) -> None:
    """Remove an operator policy."""
    call.broker.remove_policy(_existing(call, vhost, name, is_operator=True))


def _listing(call: Call, vhosts: list[str], *, is_operator: bool) -> Listing[PolicyRecord]:
    vhost_names = set(vhosts)
    chosen = [
        each for each in call.broker.policies.values() if each.vhost in vhost_names and each.is_operator == is_operator
    ]
    return Listing(
        chosen, lambda policy: _view(call, policy), lambda policy: (policy.vhost, policy.name), is_paged=False
    )


def _view(call: Call, policy: PolicyRecord) -> Fields:
    return policy_view(policy, call.broker.vhost(policy.vhost).policies.fault(policy))


def _existing(call: Call, vhost: str, name: str, *, is_operator: bool) -> PolicyRecord:
    call.vhost(vhost)
    policy = call.broker.policies.get((vhost, name, is_operator))
    if policy is None:
        raise missing()
    return policy


def _put(call: Call, vhost: str, name: str, *, is_operator: bool) -> Reply:
    if vhost not in call.broker.vhost_by_name:
        raise unknown_vhost()
    call.vhost(vhost)
    existed = (vhost, name, is_operator) in call.broker.policies
    call.broker.put_policy(policy_of(vhost, name, call.fields, is_operator=is_operator))
    return put_reply(existed)


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
