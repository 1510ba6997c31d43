"""Verbs of rabbitmqctl that gatewayctl does not support, and their replacements."""

from collections.abc import Mapping
from typing import Final

ONE_NODE: Final = "a gateway is a single node"
ERLANG: Final = "there is no Erlang runtime"
PROCESS: Final = "end the process with SIGTERM, or systemctl stop gateway"
CONFIGURATION: Final = "it is a setting of the configuration file"
PLUGINS: Final = "use plugin list, plugin enable NAME, plugin disable NAME, each with -p VHOST"
NOT_YET: Final = "not supported yet"

#: Verb to reason.
UNSUPPORTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("stop", "shutdown", "stop_app"), PROCESS),
    "start_app": "start the process: gateway run",
    "wait": "use await_startup",
    "set_stream_retention_policy": "use set_policy with max-age and max-length-bytes, --apply-to streams",
    "enable": PLUGINS,
    "disable": PLUGINS,
    "set": PLUGINS,
    "list": "use plugin list, or list_queues, list_exchanges, ...",
    "is_enabled": "use plugin is_enabled",
    "directories": "use plugin describe NAME, which shows the source; the setting plugins_dir names the directory",
    "node_health_check": "use check_running, check_local_alarms, check_virtual_hosts",
    "cluster_status": f"{ONE_NODE}; use status",
    "report": "use status and the lists",
    **dict.fromkeys(
        (
            *("join_cluster", "forget_cluster_node", "rename_cluster_node", "update_cluster_nodes", "force_boot"),
            *("force_reset", "reset", "change_cluster_node_type", "await_online_nodes", "sync_queue"),
            *("add_replica", "delete_replica", "restart_stream", "coordinator_status"),
            *("cancel_sync_queue", "reconcile_vhosts", "restart_vhost", "cluster_formation"),
        ),
        ONE_NODE,
    ),
    **dict.fromkeys(("eval", "eval_file", "exec", "force_gc", "hipe_compile", "schema_info"), ERLANG),
    **dict.fromkeys(("decode", "encode", "list_ciphers", "list_hashes"), "secrets are stored in separate files"),
    **dict.fromkeys(("set_disk_free_limit", "set_log_level", "set_vm_memory_high_watermark"), CONFIGURATION),
    "environment": "use gateway check, which prints the effective settings",
    "rotate_logs": "the tool that rotates the log file makes the broker reopen it; see the configuration of the log",
    **dict.fromkeys(
        (
            *("autocomplete", "list_unresponsive_queues", "resume_listeners", "suspend_listeners"),
            *("log_tail", "log_location", "consume_event_stream", "message_size_stats", "tls_versions"),
        ),
        NOT_YET,
    ),
}
