"""Tests wait for conditions, by ``tests/waiting.py``. A test that sleeps for a fixed time is listed with its reason."""

import ast
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

#: Functions that let time pass, of ``time``, ``asyncio``, pika and Twisted.
_SLEEPS: Final = {"sleep", "deferLater"}

#: The number of fixed sleeps in a file, and the reason why they cannot be a wait for a condition.
EXCEPTIONS: Final = {
    "broker/test_guessed_passwords.py": (1, "the pace of the innocent client"),
    "broker/test_proxied.py": (1, "each byte arrives in a read of its own"),
    "broker/test_signals.py": (2, "a signal at some time in the start; a signal that a blocked process does not show"),
    "clusters/network.py": (2, "the delay of what passes; polling on the event loop of the proxies"),
    "clusters/staying_clients.py": (3, "the pace of publishers; polling on the event loop of a client"),
    "clusters/test_partitions.py": (4, "how long a fault lasts; the time in which a leader would change again"),
    "durability/crash_trial.py": (1, "the time of the kill is the parameter"),
    "durability/test_archive_killed.py": (1, "the time of the kill is the parameter"),
    "durability/test_compacted_under_load.py": (1, "the time of the kill is the parameter"),
    "durability/test_killed_while_delaying.py": (2, "the time of the kill; the time in which a repetition would come"),
    "durability/test_mqtt_state_survives.py": (2, "an expiry in real time, while the client or the broker is away"),
    "fuzz/fuzzing.py": (3, "pauses between writes and sessions; samples of the memory"),
    "interop/amqp_clients/test_aio_pika.py": (
        2,
        "polling on the event loop of the client; an idle time beyond the heartbeat",
    ),
    "interop/mqtt_clients/test_paho_five.py": (1, "a message expires by the clock of the server"),
    "interop/amqp_clients/test_pika_blocking.py": (1, "an idle time beyond the heartbeat"),
    "interop/pages/test_tutorials.py": (1, "the work of a task"),
    "net/test_amqp_server.py": (2, "an idle time beyond the login timeout; the interval of heartbeats"),
    "pipeline/test_jobs_end_to_end.py": (1, "the latency that the job measures"),
    "plugins/test_call_times_of_kits.py": (3, "calls that block are what is tested"),
    "waiting.py": (1, "the pause between two checks of a condition"),
}


def sleeps_in(file: Path) -> int:
    text = file.read_text()
    if not any(name in text for name in _SLEEPS):
        return 0
    calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    names = (call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls)
    return sum(name in _SLEEPS for name in names)


def test_no_test_sleeps_for_a_fixed_time() -> None:
    files = [file for file in sorted((ROOT / "tests").rglob("*.py")) if ".tools" not in file.parts]
    found = Counter({str(file.relative_to(ROOT / "tests")): sleeps_in(file) for file in files})
    assert +found == Counter({file: count for file, (count, _) in EXCEPTIONS.items()})
