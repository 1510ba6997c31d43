"""The parts that clients, faults and checks of one run share."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from gateway.simulation.findings import Findings, place_of
from gateway.simulation.history import MessageHistory
from gateway.simulation.network.network import Network
from gateway.simulation.process.node_process import NodeProcess
from gateway.simulation.trace import Trace
from gateway.simulation.world.tasks import ProgramTask, Promise, sleep
from gateway.simulation.world.world import World


@dataclass
class Scene:
    """One run: the world with its network and its node, what the clients were promised, and what was found."""

    world: World
    network: Network
    process: NodeProcess
    history: MessageHistory
    findings: Findings
    trace: Trace
    tasks: list[ProgramTask] = field(default_factory=list)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> ProgramTask:
        """Start a task; an exception that ends it is a finding."""
        task = ProgramTask(self.world, name, work, self._task_failed)
        self.tasks.append(task)
        return task

    def sleep(self, seconds: float) -> Promise[None]:
        """Return a promise that is fulfilled after some virtual time."""
        return sleep(self.world, seconds)

    def run(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Let events happen until ``is_over``, for some virtual seconds at most; return whether it is over."""
        return self.world.run(is_over, self.world.now_s + seconds)

    def _task_failed(self, task: ProgramTask, error: Exception) -> None:
        self.findings.add(
            "a client's program runs to its end", f"{task.name}: {type(error).__name__}: {error} {place_of(error)}"
        )
