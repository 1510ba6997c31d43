"""The tests of this folder that are about a node alone, and are not run against a follower of a cluster."""

from typing import Final

#: The reason of each, by the end of its file or of its name without parameters.
REASONS: Final = {
    "test_gatewayctl_examples.py": "the examples stop and drain the node of a pid file, and read its log",
    "test_pages_in_any_order.py": "the plugins of the pages are files of the node",
    "test_the_page_has_the_lines_of_refused_starts": "a second process has the store of a broker without a cluster",
    "test_ports_with_and_without_a_listener": "the leader answers for its own ports, which are others on one machine",
    "test_an_answer_has_the_fields_of_rabbitmq[health/checks/node-is-quorum-critical]": (
        "the answer of RabbitMQ is that of a single node"
    ),
}


def is_about_one_node(node_id: str) -> bool:
    """Whether a test, by its id of pytest, is one of them."""
    path, _, name = node_id.partition("::")
    return any(path.endswith(f"/{each}") or each in (name, name.partition("[")[0]) for each in REASONS)
