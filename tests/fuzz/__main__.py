"""Fuzzing by hand: ``make fuzz ARGS="--only stomp --seconds 60"``. The default is one hour for each port."""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.fuzz.fuzzing import SETTINGS, GatewayFailure, Report, fuzz, replay
from tests.fuzz.ports import PORTS
from tests.running import gateway_in

#: Longest wait of the probe client, in seconds.
_LONGEST_S = 0.1

#: Allowed growth after the memory of the first minute, in bytes.
_MOST_GROWTH = 64 * 2**20


def main() -> int:
    """Fuzz every port; return 0 on success."""
    options = _options()
    names = options.only or list(PORTS)
    if len(names) == 1:
        return int(not _fuzzed(options, names[0]))
    # One process each, because a process cannot raise its priority again.
    with ThreadPoolExecutor(options.jobs) as pool:
        codes = list(pool.map(partial(_fuzzed_apart, options), names))
    return max(codes)


def _fuzzed_apart(options: argparse.Namespace, name: str) -> int:
    """Fuzz one port in its own process; return its exit code."""
    command = [sys.executable, "-m", "tests.fuzz", "--only", name, "--seconds", str(options.seconds)]
    command += ["--seed", options.seed, "--nice", str(options.nice)]
    if options.replay:
        command += ["--replay", *map(str, options.replay)]
    return subprocess.run(command, check=False).returncode


def _fuzzed(options: argparse.Namespace, name: str) -> bool:
    """Fuzz one port and print the results; return whether it passed."""
    port = PORTS[name]
    with tempfile.TemporaryDirectory() as directory, gateway_in(Path(directory), *SETTINGS) as gateway:
        try:
            if options.replay:
                replay(gateway, port, options.seed, range(*options.replay))
                return True
            report = fuzz(gateway, port, options.seconds, options.seed, niceness=options.nice)
        except GatewayFailure as harm:
            print(f"FAILED {harm}", flush=True)
            return False
        slow = [line for line in gateway.log.splitlines() if "took long" in line]
    problems = _problems(report)
    print(report, *slow[:50], *(f"FAILED {name}: {problem}" for problem in problems), sep="\n", flush=True)
    return not problems


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long each port is fuzzed")
    parser.add_argument("--only", action="append", choices=sorted(PORTS), help="fuzz this port; may be repeated")
    parser.add_argument("--seed", default=os.urandom(4).hex(), help="seed of all sessions")
    parser.add_argument("--jobs", type=int, default=1, help="number of ports fuzzed at the same time")
    parser.add_argument("--nice", type=int, default=0, help="niceness of the process that sends the sessions")
    parser.add_argument("--replay", type=int, nargs=2, metavar=("FIRST", "END"), help="send these sessions once")
    return parser.parse_args()


def _problems(report: Report) -> list[str]:
    problems = []
    if report.longest_own_s > _LONGEST_S:
        problems.append(f"the probe client waited {report.longest_own_s * 1000:.0f} ms")
    if report.at_end > report.after_start + _MOST_GROWTH:
        problems.append(f"memory grew from {report.after_start >> 20} to {report.at_end >> 20} MiB")
    return problems


if __name__ == "__main__":
    sys.exit(main())
