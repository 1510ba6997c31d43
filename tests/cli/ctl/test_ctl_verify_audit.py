"""``gatewayctl verify_audit`` and ``export_audit``."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from gateway.kernel.broker.audit_chain import digest_of
from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

Entry: TypeAlias = dict[str, Any]


def linked(previous: str, number: int, **fields: object) -> Entry:
    """Return an entry that follows one with this digest."""
    entry = {
        "number": number,
        "at_ms": 1000 * number,
        "user": "guest",
        "address": "",
        "surface": "HTTP",
        "action": "user.created",
        "vhost": "",
        "subject": f"user{number}",
        "before": None,
        "after": {"é": 1.5},
        "details": {},
        **fields,
    }
    return {**entry, "previous": previous, "digest": digest_of(previous, entry)}


def chain(count: int) -> list[Entry]:
    entries: list[Entry] = []
    for number in range(1, count + 1):
        entries.append(linked(entries[-1]["digest"] if entries else "", number))
    return entries


def written(path: Path, entries: list[Entry], end: str = "") -> str:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries) + end)
    return str(path)


def changed(entries: list[Entry]) -> list[Entry]:
    return [*entries[:2], {**entries[2], "user": "mallory"}, *entries[3:]]


def rewritten(entries: list[Entry]) -> list[Entry]:
    return [*entries[:2], linked(entries[1]["digest"], 3, user="mallory"), *entries[3:]]


def removed(entries: list[Entry]) -> list[Entry]:
    return entries[:2] + entries[3:]


def inserted(entries: list[Entry]) -> list[Entry]:
    return [*entries[:3], linked(entries[2]["digest"], 9), *entries[3:]]


def moved(entries: list[Entry]) -> list[Entry]:
    return [entries[0], entries[2], entries[1], *entries[3:]]


def without_digest(entries: list[Entry]) -> list[Entry]:
    return [*entries[:2], {**entries[2], "digest": "", "previous": ""}, *entries[3:]]


@pytest.mark.parametrize(
    ("tamper", "entries", "reason"),
    [
        (changed, {3}, "was changed"),
        (rewritten, {4}, "does not follow entry 3"),
        (removed, {4}, "does not follow entry 2"),
        (inserted, {9}, "was inserted"),
        (moved, {2, 3}, "moved"),
        (without_digest, {3, 4}, "was changed"),
    ],
)
def test_tampering_is_found_and_named(
    ctl: Ctl, tmp_path: Path, tamper: Callable[[list[Entry]], list[Entry]], entries: set[int], reason: str
) -> None:
    result = ctl("verify_audit", written(tmp_path / "a", tamper(chain(6))), "--formatter", "json")
    assert result.code == 69
    assert result.err.startswith("Error: the audit record was changed")
    found = json.loads(result.out)
    assert {each["entry"] for each in found} == entries
    assert reason in result.out


def test_a_chain_over_several_files_is_verified(ctl: Ctl, tmp_path: Path) -> None:
    entries = chain(6)
    first, second = written(tmp_path / "1", entries[:4]), written(tmp_path / "2", entries[4:])
    newest = f"6:{entries[-1]['digest']}"
    result = ctl("verify_audit", first, second)
    assert (result.code, result.out) == (0, f"6 entries are unchanged, the newest is {newest}\n")
    assert ctl("verify_audit", second, first).code == 69


def test_a_torn_last_line_is_reported_and_is_not_tampering(ctl: Ctl, tmp_path: Path) -> None:
    path = written(tmp_path / "a", chain(3), '{"number": 4, "at')
    result = ctl("verify_audit", path)
    assert result.code == 0
    assert f"{path}: the last line was torn by a crash, 17 bytes\n" in result.out


def test_a_line_that_is_no_entry_is_found(ctl: Ctl, tmp_path: Path) -> None:
    path = written(tmp_path / "a", chain(3), '{"number": 4}\n')
    result = ctl("verify_audit", path, "-s")
    assert (result.code, "3\tis followed by something that is no entry" in result.out) == (69, True)


def test_a_noted_entry_confirms_what_was_before(ctl: Ctl, tmp_path: Path) -> None:
    entries = chain(5)
    path = written(tmp_path / "a", entries)
    note = f"4:{entries[3]['digest']}"
    assert ctl("verify_audit", path, "--since", note).code == 0
    for other, reason in ((entries[:3], "removed"), (entries[4:], "dropped or removed"), (chain(2), "removed")):
        result = ctl("verify_audit", written(tmp_path / "b", other), "--since", note)
        assert (result.code, reason in result.out) == (69, True)
    anew = [linked("", 1, user="mallory")]
    for number in range(2, 6):
        anew.append(linked(anew[-1]["digest"], number))
    result = ctl("verify_audit", written(tmp_path / "c", anew), "--since", note)
    assert "another digest than was noted" in result.out
    assert ctl("verify_audit", written(tmp_path / "c", anew)).code == 0
    assert ctl("verify_audit", path, "--since", "4:abc").code == 64


def test_the_record_of_the_broker_is_verified(api: FakeApi, ctl: Ctl) -> None:
    old = [{**entry, "digest": "", "previous": ""} for entry in chain(2)]
    entries = [*old, linked("", 3)]
    entries.append(linked(entries[-1]["digest"], 4))
    api.answer("GET audit", {"items": entries[::-1], "page_count": 1})
    result = ctl("verify_audit")
    assert result.code == 0
    assert "2 entries of an earlier version have no digests\n" in result.out
    assert "2 entries are unchanged" in result.out


def test_a_cluster_of_several_cells_has_several_chains(api: FakeApi, ctl: Ctl) -> None:
    api.answer("GET audit", {"items": [{**entry, "cell": 1} for entry in chain(2)], "page_count": 1})
    result = ctl("verify_audit")
    assert (result.code, "name one, such as --cell 1" in result.err) == (69, True)


def test_an_export_continues_after_a_crash(api: FakeApi, ctl: Ctl, tmp_path: Path) -> None:
    entries = chain(5)
    path = tmp_path / "audit.jsonl"
    api.answer("GET audit", {"items": entries[2::-1], "page_count": 1})
    assert ctl("export_audit", str(path), "-q").out == "3 entries were added\n"
    path.write_bytes(path.read_bytes()[:-10])
    api.answer("GET audit", {"items": entries[::-1], "page_count": 1})
    assert ctl("export_audit", str(path), "-q").out == "3 entries were added\n"
    assert [json.loads(line) for line in path.read_text().splitlines()] == entries
    assert ctl("verify_audit", str(path)).code == 0
    assert ctl("verify_audit", str(tmp_path / "none")).code == 65
