"""Verbs of RabbitMQ's command lines that gatewayctl does not support, and their replacements."""

from collections.abc import Mapping
from typing import Final

ONE_NODE: Final = "a gateway is a single node"
ERLANG: Final = "there is no Erlang runtime"

#: Verb to reason.
UNSUPPORTED: Final[Mapping[str, str]] = {
    "stop_app": "use drain, which closes the node to clients, or stop, which ends the process",
    "start_app": "use revive after drain; to start the process: gateway run",
    "set_stream_retention_policy": "use set_policy with max-age and max-length-bytes, --apply-to streams",
    **dict.fromkeys(
        (
            *("join_cluster", "rename_cluster_node", "update_cluster_nodes", "force_boot"),
            *("force_reset", "reset", "change_cluster_node_type", "sync_queue", "cancel_sync_queue"),
            *("add_replica", "delete_replica", "restart_stream", "coordinator_status", "discover_peers"),
            *("reconcile_vhosts", "cluster_formation", "force_standalone_khepri_boot"),
        ),
        ONE_NODE,
    ),
    **dict.fromkeys(
        (
            *("eval", "eval_file", "exec", "force_gc", "hipe_compile", "schema_info", "remote_shell", "observer"),
            *("erlang_cookie_hash", "erlang_cookie_sources", "runtime_thread_stats", "maybe_stuck", "resolver_info"),
            "command_line_arguments",
        ),
        ERLANG,
    ),
    **dict.fromkeys(("decode", "encode", "list_ciphers", "list_hashes"), "secrets are stored in separate files"),
    **dict.fromkeys(
        ("list_network_interfaces", "resolve_hostname", "os_env"), "use the tools of the machine: ip, getent, env"
    ),
    **dict.fromkeys(
        ("enable_auth_attempt_source_tracking", "disable_auth_attempt_source_tracking"),
        "logins are counted by protocol, not by source",
    ),
}
