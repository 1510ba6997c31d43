"""Fuzzing by hand: ``make fuzz ARGS="--only stomp --seconds 60"``. An hour for each port if not told otherwise."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.fuzzing import SETTINGS, Harm, Report, fuzz, replay
from tests.fuzz.ports import PORTS
from tests.running import gateway_in

#: What an innocent client may have to wait, in seconds.
_LONGEST_S = 0.1

#: What may be added to the memory of the first minute, in bytes.
_MOST_GROWTH = 64 * 2**20


def main() -> int:
    """Fuzz every port; return 0 when all is well."""
    options = _options()
    failed = False
    for name in options.only or list(PORTS):
        port = PORTS[name]
        with tempfile.TemporaryDirectory() as directory, gateway_in(Path(directory), *SETTINGS) as gateway:
            try:
                if options.replay:
                    replay(gateway, port, options.seed, range(*options.replay))
                    continue
                report = fuzz(gateway, port, options.seconds, options.seed)
            except Harm as harm:
                print(f"FAILED {harm}", flush=True)
                failed = True
                continue
        print(report, flush=True)
        for problem in _problems(report):
            print(f"FAILED {name}: {problem}", flush=True)
            failed = True
    return int(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long each port is fuzzed")
    parser.add_argument("--only", action="append", choices=sorted(PORTS), help="fuzz this port; may be repeated")
    parser.add_argument("--seed", default=os.urandom(4).hex(), help="what all sessions follow from")
    parser.add_argument("--replay", type=int, nargs=2, metavar=("FIRST", "END"), help="send these sessions once")
    return parser.parse_args()


def _problems(report: Report) -> list[str]:
    problems = []
    if report.longest_s > _LONGEST_S:
        problems.append(f"the innocent client waited {report.longest_s * 1000:.0f} ms")
    if report.at_end > report.after_start + _MOST_GROWTH:
        problems.append(f"memory grew from {report.after_start >> 20} to {report.at_end >> 20} MiB")
    return problems


if __name__ == "__main__":
    sys.exit(main())
