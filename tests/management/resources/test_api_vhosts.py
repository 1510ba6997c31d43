"""Metadata of virtual hosts over HTTP: the default queue type and the protection from deletion."""

from tests.management.console import Console


def test_a_queue_without_a_type_gets_the_default_type_of_the_virtual_host(console: Console) -> None:
    assert console.put("/vhosts/shop", {"default_queue_type": "quorum"}) == 201
    console.put("/queues/shop/q", {"durable": True})
    console.put("/queues/shop/passing", {"durable": True, "auto_delete": True})
    assert console.get("/queues/shop/q")["type"] == "quorum"
    assert console.get("/queues/shop/passing")["type"] == "classic"
    assert console.get("/definitions/shop")["queues"][0]["arguments"] == {"x-queue-type": "quorum"}


def test_the_effective_default_type_is_shown(console: Console) -> None:
    root = console.get("/vhosts/%2F")
    assert root["default_queue_type"] == root["metadata"]["default_queue_type"] == "classic"
    console.put("/vhosts/%2F", {"default_queue_type": "quorum"})
    assert console.get("/vhosts/%2F")["default_queue_type"] == "quorum"
    console.put("/vhosts/%2F", {"description": "all"})
    assert console.get("/definitions")["vhosts"][0]["metadata"]["default_queue_type"] == "quorum"


def test_an_unsupported_default_type_is_refused(console: Console) -> None:
    answer = console.ask("PUT", "/vhosts/shop", {"default_queue_type": "ring"})
    assert answer.result == (400, {"error": "bad_request", "reason": "unsupported default queue type 'ring'"})
    assert console.ask("GET", "/vhosts/shop").status == 404


def test_a_protected_virtual_host_cannot_be_deleted(console: Console) -> None:
    console.put("/vhosts/shop", {})
    assert console.ask("POST", "/vhosts/shop/deletion/protection").status == 204
    assert console.get("/vhosts/shop")["protected_from_deletion"] is True
    assert console.get("/vhosts/shop")["metadata"]["protected_from_deletion"] is True
    assert console.ask("DELETE", "/vhosts/shop").result == (
        412,
        {
            "error": "precondition_failed",
            "reason": "Refusing to delete virtual host 'shop' because it is protected from deletion",
        },
    )
    assert console.ask("DELETE", "/vhosts/shop/deletion/protection").status == 204
    console.delete("/vhosts/shop")
    assert console.ask("GET", "/vhosts/shop").status == 404


def test_protection_needs_a_virtual_host_and_an_administrator(console: Console) -> None:
    assert console.ask("POST", "/vhosts/none/deletion/protection").status == 404
    assert console.ask("DELETE", "/vhosts/none/deletion/protection").status == 404
    console.put("/users/clerk", {"password": "clerk", "tags": "management"})
    assert console.ask("POST", "/vhosts/%2F/deletion/protection", user="clerk").status == 401


def test_the_protection_is_exported_and_imported(console: Console) -> None:
    console.put("/vhosts/shop", {})
    console.ask("POST", "/vhosts/shop/deletion/protection")
    other = Console()
    other.post("/definitions", {"vhosts": console.get("/definitions")["vhosts"]})
    assert other.get("/vhosts/shop")["protected_from_deletion"] is True


def test_a_node_without_cells_has_one(console: Console) -> None:
    answer = console.ask("PUT", "/vhosts/shop", {"cell": 2})
    reason = "vhost 'shop': cell must be 1, because there is one cell"
    assert answer.result == (400, {"error": "bad_request", "reason": reason})
    assert console.ask("GET", "/vhosts/shop").status == 404
    assert console.put("/vhosts/shop", {"cell": 1}) == 201
