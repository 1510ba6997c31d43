"""/stop: stops the node."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.routes import Reply, Routes

routes = Routes()


@routes.post("/stop", level=AccessLevel.ADMINISTRATOR)
def stop(call: Call) -> Reply:
    """Stop the node once this is answered."""
    call.control.stop(call.principal.name)
    return Reply(202, {"status": "stopping"})
