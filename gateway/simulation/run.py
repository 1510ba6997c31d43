"""One run: a seed, its plan, its end, and the checks after the end."""

import gc
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from gateway.simulation.faults import Fault, start
from gateway.simulation.findings import Finding, Findings, checked_log
from gateway.simulation.history import MessageHistory
from gateway.simulation.leaks import LivingObjects
from gateway.simulation.network.network import Network
from gateway.simulation.plan import RunPlan
from gateway.simulation.plugins.registry import ACCESS
from gateway.simulation.process.disk import NodeDisk
from gateway.simulation.process.hashing import cheap_derivation
from gateway.simulation.process.limits import small_limits
from gateway.simulation.process.node_process import NodeProcess
from gateway.simulation.programs.amqp import Drain
from gateway.simulation.programs.program import Program
from gateway.simulation.scene import Scene
from gateway.simulation.trace import Trace
from gateway.simulation.world.randomness import seeded_randomness
from gateway.simulation.world.tasks import ProgramTask
from gateway.simulation.world.world import World

#: The longest virtual time of the programs' work, the time that readers have after it, and the longest time of each
#: step of the end, in seconds.
_WORK_S: Final = 30.0
_READERS_S: Final = 1.0
_LONGEST_STEP_S: Final = 400.0

#: The longest turn, in virtual seconds: a budget of work, and several slices of what continues.
_LONGEST_TURN_S: Final = 0.05

#: The same with plugins: each of their calls is timed by two readings of the clock, and the messages that a reader of a
#: stream gets at once are passed to them one by one.
_LONGEST_TURN_WITH_PLUGINS_S: Final = 0.15

#: The settings of the node: passwords are hashed cheaply, and nothing that a run does not use is open.
_SETTINGS: Final[dict[str, Any]] = {
    "login": {"password_hashing": "rabbit_password_hashing_sha256"},
    "prometheus": {"port": "off"},
    "web_mqtt": {"port": "off"},
    "web_stomp": {"port": "off"},
}

#: Ready messages that a queue keeps in memory: with the lower number, those of a flood are paged out.
_RESIDENT: Final = (64, 2048)


@dataclass(frozen=True)
class RunOutcome:
    """The findings of the run of a seed. ``size`` is the number of items of its plan; ``lines`` is its trace."""

    seed: int
    findings: list[Finding]
    size: int
    events: int
    virtual_s: float
    lines: list[str]


def run_seed(
    seed: int,
    only: Collection[int] | None = None,
    *,
    traces: bool = False,
    plan_for: Callable[[Scene], RunPlan] | None = None,
) -> RunOutcome:
    """Run a seed; ``only`` has the numbers of the items of its plan to keep. ``plan_for`` returns another plan."""
    world = World(seed)
    findings = Findings(world)
    trace = Trace(world, traces)
    network = Network(world)
    disk = NodeDisk(world, (lambda operation: trace.add("disk", operation)) if traces else None)
    process = NodeProcess(world, network, disk, findings, _settings(Random(f"{seed} settings")))
    scene = Scene(world, network, process, MessageHistory(findings), findings, trace)
    process.on_failed_end = scene.history.killed
    write_log = partial(trace.add, "log")
    was_collecting = gc.isenabled()
    gc.disable()  # a collection would come at a time that the seed does not decide
    try:
        with seeded_randomness(seed), cheap_derivation(), checked_log(findings, write_log if traces else None):
            plan = RunPlan.chosen(scene, only) if plan_for is None else plan_for(scene)
            with small_limits(plan.limits):
                _run(scene, plan)
    finally:
        disk.kill()  # else its threads would end in a later collection of garbage
        if was_collecting:
            gc.enable()
    return RunOutcome(seed, findings.found, plan.size, world.events, world.now_s, trace.lines)


def _settings(random: Random) -> dict[str, Any]:
    return {**_SETTINGS, "queues": {"resident_messages": random.choice(_RESIDENT)}}


def _run(scene: Scene, plan: RunPlan) -> None:
    process, findings = scene.process, scene.findings
    started = scene.start("start", start(scene, plan.topology))
    scene.run(lambda: started.is_over, _LONGEST_STEP_S)
    living = LivingObjects()
    items: list[Program | Fault] = [*plan.programs, *plan.faults]
    tasks = [scene.start(each.name, each.run()) for each in items]
    work = [task for task, item in zip(tasks, items, strict=True) if not (isinstance(item, Program) and item.is_reader)]
    scene.run(until(work, findings), _WORK_S)
    scene.run(lambda: bool(findings), _READERS_S)
    for program in plan.programs:
        program.is_stopping = True
    is_over = scene.run(until(tasks, findings), _LONGEST_STEP_S)
    findings.require(is_over, "no client waits for ever", ", ".join(task.name for task in tasks if not task.is_over))
    if findings:
        return
    last = scene.start("start", start(scene, plan.topology))
    scene.run(lambda: last.is_over and _has_no_clients(scene), _LONGEST_STEP_S)
    for program in plan.programs:
        end = scene.start(program.name, program.run_finish())
        is_over = scene.run(lambda end=end: end.is_over, _LONGEST_STEP_S)  # type: ignore[misc]  # mypy infers no defaults
        findings.require(is_over, "no client waits for ever", f"{program.name} at the end")
    drain = scene.start("drain", Drain(scene, plan.topology, 0, Random(0)).run())
    is_over = scene.run(lambda: drain.is_over, _LONGEST_STEP_S)
    findings.require(is_over, "no client waits for ever", "the last reader")
    has_restarted = process.starts > 1
    scene.history.check_losses(has_restarted)
    scene.history.check_transactions()
    _check_end(scene, living)


def until(tasks: Iterable[ProgramTask], findings: Findings) -> Callable[[], bool]:
    """Return a function that tells whether all tasks are over, or there is a finding.

    It is asked after each event, so it looks at one task, and makes no further call.
    """
    waiting, found = list(tasks), findings.found

    def is_over() -> bool:
        while waiting and waiting[-1].is_over:
            waiting.pop()
        return not waiting or bool(found)

    return is_over


def _check_end(scene: Scene, living: LivingObjects) -> None:
    """Check that nothing of the clients is left in the node."""
    node, findings = scene.process.node, scene.findings
    assert node is not None
    broker = node.broker
    is_alone = scene.run(lambda: _has_no_clients(scene), _LONGEST_STEP_S)
    findings.require(is_alone, "no connection is left", f"{len(broker.connections)} connections")
    _check_faults(scene, broker.faults.count_by_kind)
    for vhost in broker.vhost_by_name.values():
        for queue in vhost.queue_by_name.values():
            findings.require(not queue.consumer_count, "no consumer is left", queue.name)
    scene.run(lambda: not len(broker.clock.background), _LONGEST_STEP_S)
    if scene.process.starts == 1:
        excess = living.excess(broker)
        findings.require(not excess, "no message and no connection is left in memory", excess)
    stopped = scene.process.stop()
    findings.require(scene.run(lambda: stopped.is_done, _LONGEST_STEP_S), "a stop ends", "the node did not stop")
    has_plugins = bool(scene.process.plugins.enabled)
    findings.require(
        scene.world.longest_event_s <= (_LONGEST_TURN_WITH_PLUGINS_S if has_plugins else _LONGEST_TURN_S),
        "a turn ends within its budget",
        f"one took {scene.world.longest_event_s * 1000:.1f} ms",
    )
    orphans = scene.process.disk.orphans(node.settings.data)
    findings.require(not orphans, "no content is left without a message", f"{len(orphans)} contents: {orphans[:5]}")


def _check_faults(scene: Scene, count_by_kind: Mapping[str, int]) -> None:
    """Check that the node contained the faults of plugins, each once, and no others."""
    node, findings, plugins = scene.process.node, scene.findings, scene.process.plugins
    assert node is not None
    for kind in sorted({*count_by_kind, *plugins.kinds}):
        counted, possible = count_by_kind.get(kind, 0), plugins.faults_of(kind)
        details = f"{counted} of {kind}, {possible} of them by plugins"
        findings.require(counted < possible.stop, "no exception is contained", details)
        findings.require(counted >= possible.start, "a fault of a plugin is counted", details)
    enabled = node.live_plugins.enabled("/")
    for name in sorted(plugins.enabled):
        may_stay = name == ACCESS or plugins.moods[name].attributed < plugins.fault_limit
        findings.require(
            may_stay or name not in enabled, "a plugin that fails repeatedly is switched off", f"{name} is on"
        )
        findings.require(
            name != ACCESS or name in enabled, "a plugin that decides on access stays enabled", f"{name} is off"
        )


def _has_no_clients(scene: Scene) -> bool:
    return scene.process.node is not None and not len(scene.process.node.broker.connections)
