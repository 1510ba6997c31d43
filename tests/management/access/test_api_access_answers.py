"""``DELETE /auth/cache`` drops the answers that access plugins keep."""

from tests.management.console import Console


def test_only_administrators_drop_answers(console: Console) -> None:
    assert console.ask("DELETE", "/auth/cache").status == 204
    assert console.ask("DELETE", "/auth/cache/%2F").status == 204
    console.put("/users/clerk", {"password": "clerk", "tags": "management"})
    assert console.ask("DELETE", "/auth/cache", user="clerk").status == 401


def test_a_virtual_host_that_does_not_exist_is_not_found(console: Console) -> None:
    assert console.ask("DELETE", "/auth/cache/nothing").status == 404
