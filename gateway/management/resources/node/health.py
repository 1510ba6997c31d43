"""/health/checks: health checks, answered with 200 if they succeed and 503 if they fail."""

from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509

from gateway.management.http.bodies import digits
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.routes import Reply, Routes
from gateway.management.views.listeners import protocol_named, protocol_of

routes = Routes()

_OK: Final = {"status": "ok"}
_DAYS: Final = {"days": 1, "weeks": 7, "months": 30, "years": 365}


@routes.get("/healthchecks/node/<node>")
def node(call: Call, node: str) -> Reply:
    """Check that no alarm is active on a node."""
    if node != call.broker.node:
        raise missing()
    return _active_alarms(call)


@routes.get("/health/checks/alarms", "/health/checks/local-alarms", "/healthchecks/node")
def alarms(call: Call) -> Reply:
    """Check that no alarm is active."""
    return _active_alarms(call)


@routes.get("/health/checks/virtual-hosts")
def virtual_hosts(call: Call) -> Reply:
    """Check that all virtual hosts are running, which they always are."""
    return Reply(200, _OK)


@routes.get("/health/checks/ready-to-serve-clients", "/health/checks/is-in-service")
def ready(call: Call) -> Reply:
    """Check that clients are served: that the store and the cluster work, and the node is not under maintenance."""
    control = call.context.control
    if control is not None and control.maintenance()["is_under_maintenance"]:
        return _failed("the node is under maintenance")
    return _store_works(call)


@routes.get("/health/checks/below-node-connection-limit")
def below_limit(call: Call) -> Reply:
    """Check that more connections are served: that the store has not failed, and the cluster works."""
    return _store_works(call)


def _store_works(call: Call) -> Reply:
    if call.broker.journal.has_failed:
        return _failed("the store failed")
    if call.cluster is not None and (doubt := call.cluster.doubt) is not None:
        return _failed(doubt)
    return Reply(200, _OK)


@routes.get("/health/checks/node-is-quorum-critical", "/health/checks/node-is-mirror-sync-critical")
def critical(call: Call) -> Reply:
    """Check that another node of the cluster can lead instead of this one; a node that runs alone has no other."""
    if call.cluster is None:
        return Reply(200, {**_OK, "reason": "single node cluster"})
    if call.cluster.alive == [call.broker.node]:
        return _failed("no other node of the cluster is alive: none can take over from this one")
    return Reply(200, _OK)


@routes.get("/health/checks/port-listener/<port>")
def port_listener(call: Call, port: str) -> Reply:
    """Check that a listener has this port."""
    number = digits(port)
    if number is None or number < 0:
        raise bad_request("Invalid port")
    ports = [address[1] for address in call.context.addresses().values()]
    if number in ports:
        return Reply(200, {**_OK, "port": number})
    return _failed("No active listener", missing=number, ports=ports)


@routes.get("/health/checks/protocol-listener/<protocol>")
def protocol_listener(call: Call, protocol: str) -> Reply:
    """Check that a listener has this protocol, by any of its names in RabbitMQ."""
    protocols = [protocol_of(name) for name in call.context.addresses()]
    protocol = protocol_named(protocol)
    if protocol in protocols:
        return Reply(200, {**_OK, "protocol": protocol})
    return _failed("No active listener", missing=protocol, protocols=protocols)


@routes.get("/health/checks/certificate-expiration/<within>/<unit>")
def certificate_expiration(call: Call, within: str, unit: str) -> Reply:
    """Check that no certificate of the server expires within a period."""
    if unit not in _DAYS:
        raise bad_request("Time unit not recognised. Supported units: days, weeks, months, years.")
    number = digits(within)
    if number is None or number < 0:
        raise bad_request("Invalid expiration period. It must be an integer.")
    horizon = datetime.now(UTC) + timedelta(days=min(number, 10_000) * _DAYS[unit])
    files = call.context.certificates
    found = [each for file in files for each in x509.load_pem_x509_certificates(file.read_bytes())]
    expired = [each for each in found if _end_of(each) < horizon]
    if not expired:
        return Reply(200, _OK)
    listed = [{"subject": each.subject.rfc4514_string(), "not_after": _end_of(each).isoformat()} for each in expired]
    return _failed("Certificates expiring", expired=listed)


def _active_alarms(call: Call) -> Reply:
    active_alarms = call.broker.alarms.standing
    if not active_alarms:
        return Reply(200, _OK)
    raised = [{"node": call.broker.node, "resource": resource.name.lower()} for resource in active_alarms]
    return _failed("There are alarms in effect in the cluster", alarms=raised)


def _end_of(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_after_utc


def _failed(reason: str, **details: object) -> Reply:
    return Reply(503, {"status": "failed", "reason": reason, **details})
