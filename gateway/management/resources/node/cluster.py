"""/cluster: the state of a cluster of several nodes; ``404`` for a node that runs alone."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.routes import Fields, Routes
from gateway.management.views.members import cluster_view

routes = Routes()


@routes.get("/cluster", level=AccessLevel.MONITORING)
def cluster(call: Call) -> Fields:
    """Return the state of the cluster as the leader sees it."""
    if call.cluster is None:
        raise missing()
    return cluster_view(call.cluster)
