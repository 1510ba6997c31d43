"""The example of each verb in the help of ``gatewayctl``, run once against a broker."""

import json
import os
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pika
import pytest

from gateway.cli.ctl.connecting.profiles import FILE_VARIABLE
from gateway.cli.ctl.examples import EXAMPLES
from gateway.cli.ctl.main import main
from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.gateways import gateway_in
from tests.management_client import get, put, request
from tests.running import Gateway

#: The verbs in an order in which each finds what it needs.
ORDER: Final = """
    help; completion; autocomplete; version; ping; await_startup; wait; await_online_nodes
    profile add; profile list; profile use; profile remove
    add_vhost; list_vhosts; set_vhost_tags; restart_vhost
    set_vhost_limits; list_vhost_limits; clear_vhost_limits
    enable_vhost_protection_from_deletion; disable_vhost_protection_from_deletion
    hash_password; add_user; authenticate_user; change_password; set_user_tags; list_users
    set_user_limits; list_user_limits; clear_user_limits
    set_permissions; list_permissions; list_user_permissions
    set_topic_permissions; list_topic_permissions; list_user_topic_permissions; clear_topic_permissions
    clear_permissions; clear_auth_backend_cache
    set_policy; list_policies; list_policies_that_match; clear_policy
    set_operator_policy; list_operator_policies; clear_operator_policy
    set_parameter; list_parameters; clear_parameter
    set_global_parameter; list_global_parameters; clear_global_parameter
    list_queues; list_exchanges; list_bindings; explain; trace_on; trace_off; trace_table; trace_messages; where_is
    peek; messages search; messages move; messages copy; messages edit; messages delete; messages requeue
    messages undo; messages jobs
    list_delayed_messages; cancel_delayed_messages; list_archives; list_unresponsive_queues
    list_kept_messages; drop_kept_messages; list_deduplication_windows; clear_deduplication_window
    list_pipeline_runs; pipeline_run; pipeline_report; list_pipeline_batches; end_pipeline_batch
    set_stream_offset; list_stream_tracking; stream_status; delete_stream_offset
    list_stream_consumers; list_stream_publishers; list_stream_connections; list_stream_consumer_groups
    list_stream_group_consumers; add_super_stream; delete_super_stream
    quorum_status; rebalance; add_member; delete_member; grow; shrink; reclaim_quorum_memory
    list_connections; list_channels; list_consumers; list_stomp_connections; list_mqtt_connections
    list_web_mqtt_connections; close_connection; close_all_connections; close_all_user_connections
    shovel_status; restart_shovel; delete_shovel; federation_status; restart_federation_link
    export_definitions; import_definitions; migrate check; definitions diff; definitions apply
    list; enable; is_enabled; directories; set; disable
    plugin list; plugin enable; plugin is_enabled; plugin settings; plugin describe; plugin disable
    plugin upload; plugin reload; plugin rollback; plugin verbs; plugin call; plugin directories; plugin set
    check_running; check_local_alarms; check_alarms; check_port_listener; check_protocol_listener
    check_port_connectivity; check_virtual_hosts; check_certificate_expiration
    check_if_node_is_quorum_critical; check_if_node_is_mirror_sync_critical
    node_health_check; is_running; is_booting; alarms
    status; cluster_status; report; audit; verify_audit; export_audit; sql; message_size_stats; observe
    server_version; erlang_version; listeners; list_feature_flags
    enable_feature_flag; set_cluster_name; memory_breakdown; list_node_auth_attempt_stats
    reset_node_auth_attempt_metrics; tls_versions; cipher_suites; certificates; compact
    environment; set_setting; clear_setting; reload; set_vm_memory_high_watermark; set_disk_free_limit; set_log_level
    start_recording; recording_status; stop_recording
    rotate_logs; log_location; log_tail; log_tail_stream; consume_event_stream
    suspend_listeners; resume_listeners; drain; revive
    transfer_leadership; forget_cluster_node
    await_online_quorum_plus_one; await_online_synchronized_mirror; post_upgrade
    purge_queue; delete_queue; clear_password; delete_user; delete_vhost; shutdown; stop
"""
VERBS: Final = [verb.strip() for line in ORDER.strip().splitlines() for verb in line.split(";")]

#: Verbs whose example cannot succeed here, with their exit codes.
REFUSED: Final = {
    "delete_member": 69,
    "migrate check": 2,  # the hash of one exchange type is not RabbitMQ's
    "observe": 64,
    "transfer_leadership": 69,
    "forget_cluster_node": 69,
    "end_pipeline_batch": 69,
}

PLUGIN: Final = """
from gateway.api import CtlVerb, HttpResource, Interceptor, hookimpl

class Unchanged(Interceptor):
    on_error = "refuse"

    def on_publish(self, message, origin):
        return message

@hookimpl
def gateway_interceptors():
    return [Unchanged()]

@hookimpl
def gateway_http_resources():
    return [HttpResource("count", lambda request: {"count": 0})]

@hookimpl
def gateway_ctl_verbs():
    return [CtlVerb("count", "count", "Count.")]
"""


@dataclass(frozen=True)
class World:
    """A broker, and the values of the names, ports and files in the examples."""

    gateway: Gateway
    names: dict[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("examples")
    (directory / "plugins").mkdir(mode=0o700)
    settings = (
        f"plugins_dir={directory / 'plugins'}", "plugins.allow_upload=true", f"log.file={directory / 'log'}",
        f"pipeline.results_dir={directory / 'results'}",
    )  # fmt: skip
    run = directory / "results" / "rollup"
    run.mkdir(parents=True)
    (run / "run.json").write_text('{"job": "rollup", "figures": {"windows": 365}}')
    (run / "report.html").write_text("<!doctype html><title>rollup</title>")
    with gateway_in(directory, *settings) as gateway:
        pid_file = directory / "gateway.pid"
        pid_file.write_text(f"{gateway.child.pid}\n")
        (directory / "enrich.py").write_text(PLUGIN)
        _, port = gateway.addresses["amqp"]
        node = get(gateway, "overview")["node"]
        http = "127.0.0.1:{}".format(gateway.addresses["management"][1])
        names = {
            "127.0.0.1:15672": http,
            "/run/gateway.pid": str(pid_file),
            "5672": str(port),
            "gateway@host": node,
            " 60": " 2",
        }
        before = Path.cwd()
        os.chdir(directory)  # examples name files without a directory
        try:
            yield World(gateway, names)
        finally:
            os.chdir(before)


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Run the example of a verb, and return the exit code."""
    host, port = world.gateway.addresses["management"]
    monkeypatch.setenv("GATEWAYCTL_URL", f"http://{host}:{port}")
    monkeypatch.setenv(FILE_VARIABLE, str(world.gateway.directory / "profiles" / "gatewayctl.toml"))

    def call(verb: str) -> int:
        line = EXAMPLES[verb]
        for name, real in world.names.items():
            line = line.replace(name, real)
        return main(shlex.split(line))

    return call


def prepare_topology(world: World) -> None:
    """Create the queues, the stream and the link that examples name, in the virtual host shop."""
    gateway = world.gateway
    put(gateway, "permissions/shop/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    put(gateway, "queues/shop/orders", {"durable": True, "arguments": {"x-delayed-delivery": True}})
    put(gateway, "queues/shop/invoices", {"durable": True, "arguments": {"x-message-deduplication": True}})
    put(gateway, "exchanges/shop/prices", {"type": "x-lvc", "durable": True})
    price = {"properties": {}, "routing_key": "EUR", "payload": "1.1", "payload_encoding": "string"}
    request(gateway, "POST", "exchanges/shop/prices/publish", price)
    for name in ("failed", "copies"):
        put(gateway, f"queues/shop/{name}", {"durable": True})
    put(gateway, "queues/shop/payments", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    put(gateway, "queues/shop/events", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    host, port = gateway.addresses["amqp"]
    uri = f"amqp://guest:guest@{host}:{port}/shop"
    shovel = {"src-uri": uri, "src-queue": "copies", "dest-uri": uri, "dest-queue": "payments"}
    put(gateway, "parameters/shovel/shop/to-archive", {"value": shovel})
    put(gateway, "parameters/federation-upstream/shop/near", {"value": {"uri": uri, "queue": "orders"}})
    put(gateway, "policies/shop/federated", {"pattern": "^payments$", "definition": {"federation-upstream": "near"}})


def trace_a_message(world: World) -> None:
    """Trace all messages of the virtual host shop, and publish one to the queue orders."""
    put(world.gateway, "message-traces/shop", {"sample": 1.0})
    message = {"properties": {}, "routing_key": "orders", "payload": "1", "payload_encoding": "string"}
    assert request(world.gateway, "POST", "exchanges/shop/amq.default/publish", message) == {"routed": True}


def use_a_newer_file(world: World) -> None:
    """Enable the uploaded plugin, and change its file."""
    request(world.gateway, "PUT", "plugins/shop/enrich")
    with (world.gateway.directory / "plugins" / "enrich.py").open("a") as file:
        file.write("# a newer version\n")


def name_of_link(world: World) -> None:
    """Put the identifier of the federation link in the place of that of the example."""
    links = get(world.gateway, "federation-links")
    world.names["5f3a1c"] = links[0]["id"]


def name_of_connection(world: World) -> pika.BlockingConnection:
    """Open a connection, and put its name in the place of that of the example."""
    connection = pika.BlockingConnection(parameters(world.gateway.broker))
    socket = connection._impl._transport._sock
    name = "{0[0]}:{0[1]} -> {1[0]}:{1[1]}".format(socket.getsockname(), socket.getpeername())
    world.names["127.0.0.1:50000 -> 127.0.0.1:" + world.names["5672"]] = name
    return connection


PREPARATIONS: Final[dict[str, Callable[[World], object]]] = {
    "set_policy": prepare_topology,
    "where_is": trace_a_message,
    "close_connection": name_of_connection,
    "restart_federation_link": name_of_link,
    "plugin reload": use_a_newer_file,
}


def test_every_example_is_in_the_order() -> None:
    assert sorted(VERBS) == sorted(EXAMPLES)


@pytest.mark.parametrize("verb", VERBS)
def test_the_example_of_a_verb_works(
    verb: str, world: World, run: Callable[[str], int], capsys: pytest.CaptureFixture[str]
) -> None:
    kept = PREPARATIONS.get(verb, lambda world: None)(world)
    code = run(verb)
    printed = capsys.readouterr()
    has_metrics = "prometheus" in world.gateway.addresses
    assert code == REFUSED.get(verb, 69 if verb == "message_size_stats" and not has_metrics else 0), printed.err
    assert "Traceback" not in printed.err
    if "--formatter=json" in EXAMPLES[verb]:
        json.loads(printed.out)
    del kept


def test_the_log_of_the_broker_has_no_fault(world: World) -> None:
    written = "".join(path.read_text() for path in world.gateway.directory.glob("log*") if path.is_file())
    assert "Traceback" not in written + world.gateway.log
    assert "internal error" not in written
