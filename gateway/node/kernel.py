"""The kernel of a node, built from its settings."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gateway.archive.service import archive_rules
from gateway.config import Settings
from gateway.kernel.archives.message_traces import TraceRules
from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.store import Store
from gateway.kernel.messages.message import Value
from gateway.kernel.messages.native_header import NATIVE
from gateway.kernel.vhosts.queue_rules import QueueRules
from gateway.net.clock import ReactorClock
from gateway.node.audit import audit_rules, workbench_rules
from gateway.node.protocols import PROTOCOLS
from gateway.patterns import compile_pattern

if TYPE_CHECKING:
    from gateway.plugins.view import PluginView


def build_kernel(
    settings: Settings, store: Store, clock: ReactorClock, view: "Callable[[str, Mapping[str, Value]], PluginView]"
) -> Broker:
    """Return the broker of these settings, without its virtual hosts. ``view`` returns the plugins of one of them."""
    formats = [*(protocol.format for protocol in PROTOCOLS), NATIVE]
    return Broker(
        store,
        clock,
        {format.name: format for format in formats},
        view,
        node=settings.node,
        compile_pattern=compile_pattern,
        archive_rules=archive_rules(settings),
        audit_rules=audit_rules(settings),
        workbench_rules=workbench_rules(settings),
        trace_rules=TraceRules(settings.traces.sample, settings.traces.max_messages, settings.traces.max_bytes),
        queue_rules=QueueRules(
            resident_messages=settings.queues.resident_messages,
            permits_transient=settings.deprecated_features.permit_transient_nonexcl_queues,
            default_type=settings.queues.default_queue_type,
            segment_size=settings.streams.segment_size,
            reserve=settings.queues.reserve,
        ),
    )
