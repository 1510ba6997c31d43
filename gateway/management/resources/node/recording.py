"""/recording: the recording of connections, for a replay in the simulation."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, Routes

routes = Routes()


@routes.get("/recording", level=AccessLevel.ADMINISTRATOR)
def recording(call: Call) -> Fields:
    """Return whether connections are recorded, the file, its size, and the numbers of connections."""
    return dict(call.control.recording())


@routes.put("/recording", level=AccessLevel.ADMINISTRATOR)
def start(call: Call) -> Fields:
    """Record the connections that are opened from now on, until the node stops; a running recording goes on."""
    call.control.start_recording(call.principal.name)
    return dict(call.control.recording())


@routes.delete("/recording", level=AccessLevel.ADMINISTRATOR)
def stop(call: Call) -> None:
    """End the recording; its file stays."""
    call.control.stop_recording(call.principal.name)
