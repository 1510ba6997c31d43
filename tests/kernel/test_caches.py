"""Bounded caches."""

from gateway.kernel.caches import remember


def test_a_full_cache_is_cleared_before_the_next_entry() -> None:
    cache: dict[str, int] = {}
    assert [remember(cache, key, number, 2) for number, key in enumerate("abc")] == [0, 1, 2]
    assert cache == {"c": 2}
