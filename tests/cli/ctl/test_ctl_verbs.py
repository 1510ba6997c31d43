"""All required verbs exist and are documented in docs/gatewayctl.md."""

from pathlib import Path

import pytest

from gateway.cli.ctl.examples import EXAMPLES
from gateway.cli.ctl.main import gatewayctl
from gateway.cli.ctl.unsupported import UNSUPPORTED
from gateway.cli.example_help import commands_of
from gateway.version import VERSION
from tests.cli.ctl.running import Ctl

PAGE = (Path(__file__).parents[3] / "docs" / "gatewayctl.md").read_text(encoding="utf-8")

REQUIRED = """
    add_user delete_user change_password set_user_tags list_users authenticate_user
    add_vhost delete_vhost list_vhosts
    set_vhost_limits clear_vhost_limits list_vhost_limits set_user_limits clear_user_limits list_user_limits
    set_permissions clear_permissions list_permissions list_user_permissions
    set_topic_permissions clear_topic_permissions list_topic_permissions
    set_policy clear_policy list_policies list_policies_that_match
    set_operator_policy clear_operator_policy list_operator_policies
    list_queues list_exchanges list_bindings list_connections list_channels list_consumers
    purge_queue delete_queue close_connection close_all_connections
    status ping await_startup version
    export_definitions import_definitions hash_password
    trace_on trace_off
    set_parameter clear_parameter list_parameters
    set_global_parameter clear_global_parameter list_global_parameters
    check_running check_local_alarms check_alarms
    check_port_connectivity check_port_listener check_protocol_listener check_virtual_hosts
"""


SECTION_6_2 = """
    set_vm_memory_high_watermark set_disk_free_limit set_log_level rotate_logs environment wait stop
    check_certificate_expiration listeners memory_breakdown log_tail log_location consume_event_stream
    message_size_stats server_version tls_versions
    list_mqtt_connections list_stomp_connections list_web_mqtt_connections
    enable disable list set is_enabled directories
    shovel_status delete_shovel restart_shovel federation_status restart_federation_link
    rebalance quorum_status add_member delete_member grow shrink
    stream_status add_super_stream list_stream_consumers list_stream_publishers list_stream_connections
    list_stream_tracking list_stream_consumer_groups list_stream_group_consumers drain revive
"""


@pytest.mark.parametrize("verb", [*REQUIRED.split(), *SECTION_6_2.split()])
def test_a_required_verb_exists(verb: str) -> None:
    assert verb in gatewayctl.commands


@pytest.mark.parametrize("verb", gatewayctl.commands)
def test_a_verb_is_documented(verb: str, ctl: Ctl) -> None:
    assert f"`{verb}" in PAGE
    assert ctl("help", verb).out.startswith(f"Usage: gatewayctl {verb} ")


ALL = [name for name, _ in commands_of(gatewayctl)]


@pytest.mark.parametrize("name", ALL)
def test_the_help_of_a_verb_has_an_example_of_it(name: str, ctl: Ctl) -> None:
    example = EXAMPLES[name]
    assert example.startswith(name) or name in ("plugin directories", "plugin set")
    assert f"gatewayctl {example}" in ctl(*name.split(), "--help").out


def test_every_example_is_of_a_verb() -> None:
    assert set(EXAMPLES) <= set(ALL)


@pytest.mark.parametrize(
    "option", ["--vhost", "--formatter", "--quiet", "--silent", "--no-table-headers", "--url", "--profile"]
)
def test_an_option_is_documented(option: str) -> None:
    assert f"`{option}" in PAGE or f", {option}" in PAGE


def test_no_verb_is_both_supported_and_unsupported() -> None:
    assert set(UNSUPPORTED).isdisjoint(gatewayctl.commands)


@pytest.mark.parametrize("verb", UNSUPPORTED)
def test_the_error_for_an_unsupported_verb_gives_the_reason(verb: str, ctl: Ctl) -> None:
    result = ctl(verb, "with", "--any", "arguments")
    assert (result.code, result.err) == (64, f"Error: Command '{verb}' is not implemented: {UNSUPPORTED[verb]}\n")


def test_version_is_printed(ctl: Ctl) -> None:
    assert ctl("version").out == ctl("--version").out == f"{VERSION}\n"


def test_help_lists_the_verbs(ctl: Ctl) -> None:
    assert ctl("help").out == ctl("--help").out
    assert "list_queues" in ctl("help").out
