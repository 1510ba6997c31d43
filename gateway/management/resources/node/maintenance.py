"""/maintenance: closes the node to clients and opens it again; /stop stops it; /tls reports on TLS."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, Reply, Routes

routes = Routes()


@routes.get("/maintenance", level=AccessLevel.MONITORING)
def maintenance(call: Call) -> Fields:
    """Return whether the node is under maintenance, its suspended listeners, and the number of connections left."""
    return dict(call.control.maintenance())


@routes.put("/maintenance", level=AccessLevel.ADMINISTRATOR)
def drain(call: Call) -> Fields:
    """Close the listeners of clients, and their connections in slices; ``GET /maintenance`` shows the progress."""
    call.control.drain(call.principal.name)
    return dict(call.control.maintenance())


@routes.delete("/maintenance", level=AccessLevel.ADMINISTRATOR)
def revive(call: Call) -> None:
    """Serve clients again."""
    call.control.revive(call.principal.name)


@routes.put("/maintenance/listeners", level=AccessLevel.ADMINISTRATOR)
def suspend(call: Call) -> Fields:
    """Close the listeners of clients; their connections stay."""
    call.control.suspend_listeners(call.principal.name)
    return dict(call.control.maintenance())


@routes.delete("/maintenance/listeners", level=AccessLevel.ADMINISTRATOR)
def resume(call: Call) -> None:
    """Open the suspended listeners at the same ports."""
    call.control.resume_listeners(call.principal.name)


@routes.post("/stop", level=AccessLevel.ADMINISTRATOR)
def stop(call: Call) -> Reply:
    """Stop the node once this is answered."""
    call.control.stop(call.principal.name)
    return Reply(202, {"status": "stopping"})


@routes.get("/tls", level=AccessLevel.MONITORING)
def tls(call: Call) -> Fields:
    """Return the TLS versions, the cipher suites and the certificates of the node."""
    return dict(call.control.tls())
