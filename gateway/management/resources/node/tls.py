"""/tls: the TLS versions, cipher suites and certificates of the node."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/tls", level=AccessLevel.MONITORING)
def tls(call: Call) -> Fields:
    """Return the TLS versions, the cipher suites and the certificates of the node."""
    return dict(call.control.tls())
