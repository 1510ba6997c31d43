"""/cluster-name: the name of the broker."""

from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import require
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, Routes
from gateway.management.resources.node.overview import cluster_name

routes = Routes()


@routes.get("/cluster-name")
def name(call: Call) -> Fields:
    """Return the cluster name."""
    return {"name": cluster_name(call)}


@routes.put("/cluster-name", level=AccessLevel.ADMINISTRATOR)
def rename(call: Call) -> None:
    """Set the cluster name."""
    (name,) = require(call.fields, "name")
    call.broker.parameters.put(ParameterRecord("", "", "cluster_name", name))
