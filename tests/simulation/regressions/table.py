"""Bugs that the simulation found, each with the plan that shows it and its repair, to be undone.

Plans of the store (``store-``) leave nothing to chance but what a loss of power takes. Those of a broker (``run-``)
are made by ``gateway simulate --save``: after changes of its clients another seed than theirs shows the bug.
"""

from dataclasses import dataclass
from typing import Final

from tests.simulation.mutations.table import Mutation, mutation_named


@dataclass(frozen=True, slots=True)
class Regression:
    """A bug: the name of its plan in ``plans``, and the change of the source that undoes its repair."""

    plan: str
    undone: Mutation


REGRESSIONS: Final = (
    Regression(
        "store-root",
        Mutation(
            "a start does not sync what a killed process wrote",
            "gateway_lmdb.environment",
            "        self._lmdb.sync(True)\n        with suppress",
            "        with suppress",
        ),
    ),
    Regression(
        "store-name",
        Mutation(
            "only the first start syncs the name of the file",
            "gateway_lmdb.environment",
            "        with suppress(*(() if is_new else (PermissionError,))):  # the parent may belong to another user\n"
            "            self.disk.sync_directories(self.path)\n",
            "        if is_new:\n            self.disk.sync_directories(self.path)\n",
        ),
    ),
    Regression(
        "store-compaction",
        Mutation(
            "an error of the compacted file ends the writer with a traceback",
            "gateway_lmdb.writer",
            "except (_ClosedWhileStalled, lmdb.Error, StorageError) as error:",
            "except (_ClosedWhileStalled, lmdb.Error) as error:",
        ),
    ),
    Regression(
        "run-tracer",
        Mutation(
            "the report of a fault counts as time of the tracer",
            "gateway.kernel.archives.tracing",
            "            error = raised\n",
            "            self._contain(tracer, raised)\n",
        ),
    ),
    Regression(
        "run-slow-tracer",
        Mutation(
            "the time of a tracer is not charged to the turn",
            "gateway.kernel.archives.tracing",
            "        if seconds > _NOTABLE_S:  # a tracer may take milliseconds for a message\n",
            "        if False:\n",
        ),
    ),
    Regression(
        "run-interceptor",
        Mutation(
            "the report of a slow interceptor counts as time of the next one",
            "gateway.kernel.interception.call_times",
            "            self._before_s = self._budget.monotonic_s()\n            self._starts_s +=",
            "            self._starts_s +=",
        ),
    ),
    Regression(
        "run-cancelled-will",
        Mutation(
            "a CONNACK does not wait until a cancelled will is durably gone",
            "gateway_mqtt.handshake.handshake",
            "        if self._removes_stored:",
            "        if False:",
        ),
    ),
    Regression(
        "run-group-resent",
        Mutation(
            "a member that connects again gets its message of QoS 2 before the identifier is durable",
            "gateway_mqtt.traffic.delivering",
            "        if held and self._session.is_durable:",
            "        if False:",
        ),
    ),
    Regression(
        "run-long-session",
        Mutation(
            "a client that has left has no name for the jobs that it began",
            "gateway_mqtt.connection",
            "        if self._lost_user is not None:\n            return self._lost_user\n",
            "        assert self._lost_user is None\n",
        ),
    ),
    Regression(
        "run-wide-nonsense",
        Mutation(
            "what is no destination among very many is ignored",
            "gateway.kernel.routing.router",
            "            self._contain_other(destination, walk)\n",
            "            walk.is_cacheable = False\n",
        ),
    ),
    Regression(
        "run-wide-qos2",
        Mutation(
            "the packet identifier of a publish to very many queues is stored before its message",
            "gateway_mqtt.traffic.publishing",
            "            self._qos2_state.receive_with(packet_id, work)\n",
            "            self._qos2_state.receive(packet_id)\n",
        ),
    ),
    Regression(
        "run-kept-owner",
        Mutation(
            "an exclusive queue that was deleted keeps its connection",
            "gateway.kernel.vhosts.queues",
            "        queue.disown()\n",
            "",
        ),
    ),
    Regression(
        "run-lent-header",
        mutation_named("a publish in pieces that repeats the one before lends its header to the next ones"),
    ),
)
