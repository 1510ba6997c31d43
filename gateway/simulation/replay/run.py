"""One replay: a node on the virtual clock, the connections of a recording, and what is different."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.access import PasswordVerifier
from gateway.kernel.errors import ConfigurationError
from gateway.kernel.journal.records.access import UserRecord
from gateway.recording.lines import RecordedEvent, read_recording
from gateway.recording.parsing import HIDDEN
from gateway.simulation.findings import Finding, Findings, checked_log
from gateway.simulation.history import MessageHistory
from gateway.simulation.network.network import Network
from gateway.simulation.process.disk import NodeDisk
from gateway.simulation.process.node_process import NodeProcess
from gateway.simulation.replay.comparing import differences
from gateway.simulation.replay.player import Player
from gateway.simulation.scene import Scene
from gateway.simulation.trace import Trace
from gateway.simulation.world.randomness import seeded_randomness
from gateway.simulation.world.world import World

#: The time for a start, the longest recording, and the time for the last answers, in virtual seconds.
_START_S: Final = 600.0
_LONGEST_S: Final = 10**7
_LAST_S: Final = 2.0

_MASKED: Final = HIDDEN.decode()


@dataclass(frozen=True)
class ReplayOutcome:
    """The lines of the dialogue, the differences, the broken promises, and some numbers."""

    lines: list[str]
    differences: list[str]
    findings: list[Finding]
    connections: int
    answers: int
    virtual_s: float


def replay(
    path: Path, definitions: Path | None = None, seed: int | None = None, *, traces: bool = False
) -> ReplayOutcome:
    """Replay a recording on a broker with these definitions. A seed lets the network cut and delay the bytes.

    :raises ConfigurationError: if the recording or the definitions cannot be read.
    """
    for _ in _events(path):
        pass  # an error in the file is one before the replay, not one in the middle of it
    settings: dict[str, Any] = {"prometheus": {"port": "off"}, "recording": {"enabled": False}}
    if definitions is not None:
        settings["load_definitions"] = str(definitions)
    world = World(seed or 0)
    findings = Findings(world)
    trace = Trace(world, traces)
    network = Network(world)
    disk = NodeDisk(world)
    process = NodeProcess(world, network, disk, findings, settings)
    scene = Scene(world, network, process, MessageHistory(findings), findings, trace)
    player = Player(scene, is_disturbed=seed is not None)
    was_collecting = gc.isenabled()
    gc.disable()  # as in a run of a seed
    try:
        with seeded_randomness(seed or 0), checked_log(findings, lambda line: trace.add("log", line)):
            _run(scene, player, path)
            found = list(differences(player.clients.values()))
    finally:
        disk.kill()
        if was_collecting:
            gc.enable()
    answers = sum(len(client.answers) for client in player.clients.values())
    return ReplayOutcome(trace.lines, found, findings.found, len(player.clients), answers, world.now_s)


def _run(scene: Scene, player: Player, path: Path) -> None:
    process = scene.process
    started = process.start()
    assert process.node is not None
    _accept_masked(process.node.passwords)
    scene.run(lambda: started.is_done, _START_S)
    if scene.findings:
        raise ConfigurationError(f"the simulated broker does not start: {scene.findings.found[0].details}")
    task = scene.start("replay", player.play(_events(path)))
    scene.run(lambda: task.is_over, _LONGEST_S)
    scene.run(lambda: False, _LAST_S)


def _events(path: Path) -> Iterator[RecordedEvent]:
    try:
        with path.open("rb") as file:
            yield from read_recording(file)
    except OSError as error:
        raise ConfigurationError(f"'{path}': {error.strerror}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"'{path}': {error}") from None


def _accept_masked(passwords: PasswordVerifier) -> None:
    """Let the password check accept masked passwords of users that exist."""
    verify = passwords.verify

    def accept(password: str, name: str, user: UserRecord | None, answer: Callable[[bool], None]) -> None:
        if user is not None and password and not password.strip(_MASKED):
            answer(True)
        else:
            verify(password, name, user, answer)

    passwords.verify = accept  # type: ignore[method-assign]  # this object alone
