"""A plan of a run as a file: it names its programs, faults and queues, so it stays the same when choices change.

The file is JSON. What the network and the clock leave open still follows from the seed in it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from gateway.kernel.errors import ConfigurationError
from gateway.simulation.faults import Fault
from gateway.simulation.plan import CHOICES, FAULTS, RunPlan
from gateway.simulation.programs.program import Program
from gateway.simulation.scene import Scene
from gateway.simulation.topology import QueuePlan, SharedTopology

#: The version of the format. A reader refuses others.
FORMAT: Final = 1

_PROGRAMS: Final[Mapping[str, type[Program]]] = {kind.__name__: kind for kinds in CHOICES for kind in kinds}
_FAULTS: Final[Mapping[str, type[Fault]]] = {kind.__name__: kind for kind in FAULTS}


def write_plan(plan: RunPlan, seed: int, path: Path) -> None:
    """Write the plan of a seed."""
    topology = plan.topology
    document = {
        "simulation_plan": FORMAT,
        "seed": seed,
        "exchange": topology.exchange,
        "qos": topology.qos,
        "priorities": topology.priorities,
        "limits": plan.limits,
        "queues": [
            {"name": queue.name, "durable": queue.is_durable, "arguments": queue.arguments, "keys": queue.keys}
            for queue in topology.queues
        ],
        "programs": [{"kind": type(each).__name__, "number": _number(each)} for each in plan.programs],
        "faults": [
            {"kind": type(each).__name__, "number": _number(each), "at_s": each.at_s, "lasts_s": each.lasts_s}
            for each in plan.faults
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


class StoredPlan:
    """A plan that was read from a file. ``seed`` is that of its run."""

    def __init__(self, path: Path) -> None:
        """Read a plan. :raises ConfigurationError: if it cannot be read; the error names the file and the place."""
        try:
            document: Any = json.loads(path.read_bytes())
            if not isinstance(document, dict) or document.get("simulation_plan") != FORMAT:
                raise ConfigurationError(f"'{path}': this is no plan: 'simulation_plan' is not {FORMAT}")
            self.seed = int(document["seed"])
            self._topology = SharedTopology(
                str(document["exchange"]), int(document["qos"]), tuple(document["priorities"])
            )
            self._topology.queues += [
                QueuePlan(str(each["name"]), bool(each["durable"]), dict(each["arguments"]), tuple(each["keys"]))
                for each in document["queues"]
            ]
            self._limits = dict(document.get("limits", {}))
            self._programs = [(_PROGRAMS[each["kind"]], int(each["number"])) for each in document["programs"]]
            self._faults = [
                (_FAULTS[each["kind"]], int(each["number"]), float(each["at_s"]), float(each["lasts_s"]))
                for each in document["faults"]
            ]
        except OSError as error:
            raise ConfigurationError(f"'{path}': {error.strerror}") from None
        except KeyError as error:
            raise ConfigurationError(f"'{path}': {error} is missing, or a kind that does not exist") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigurationError(f"'{path}': not a plan: {error}") from None

    def plan(self, scene: Scene) -> RunPlan:
        """Return the plan for a run; once only."""
        topology = self._topology
        topology.complete(scene.history)
        plan = RunPlan(topology, [], [], len(self._programs) + len(self._faults), self._limits)
        for program, number in self._programs:
            plan.programs.append(program(scene, topology, number, Random(f"{self.seed} item {number}")))
        for kind, number, at_s, lasts_s in self._faults:
            fault = kind(scene, topology, number, Random(f"{self.seed} item {number}"))
            fault.at_s, fault.lasts_s = at_s, lasts_s
            plan.faults.append(fault)
        return plan


def _number(item: Program | Fault) -> int:
    return int(item.name.rpartition("-")[2])
