"""Play the plan of a regression on the broker without its repair: ``python -m tests.simulation.regressions PLAN``.

Prints the broken promises, one a line; the exit code is 0 if there are some.
"""

import sys

from tests.simulation.mutations.importing import install
from tests.simulation.regressions.table import REGRESSIONS


def main(name: str) -> int:
    (regression,) = [each for each in REGRESSIONS if each.plan == name]
    install(regression.undone)
    from tests.simulation.regressions.playing import MANY_SEEDS, broken_by  # imports the changed module

    broken = broken_by(name, MANY_SEEDS)
    print("\n".join(broken))
    return 0 if broken else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
