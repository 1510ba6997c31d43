"""One target under atheris, in a process of its own.

``python -m tests.fuzz.decoders.session MODULE TARGET WORK SECONDS RUNS``

libFuzzer ends the process when a run takes too long or too much memory; what breaks a law is written down, and the
process continues.
"""

import logging
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, Final

#: Limits of libFuzzer for one run. Whatever is slower than ``trial.run`` allows is a finding before.
_TIMEOUT_S: Final = 30
_MOST_MIB: Final = 4096

#: Packages whose code guides the fuzzer: ours, and the codecs that we pass bytes to.
INSTRUMENTED: Final = [
    "gateway", "gateway_amqp", "gateway_mqtt", "gateway_stomp", "gateway_lmdb", "gateway_jetstream", "gateway_auth",
    "gateway_interceptors", "wsproto", "h11",
]  # fmt: skip

#: The packages for whole connections: with the broker behind them, a run would take a second.
_OF_CONNECTIONS: Final = ["gateway_amqp", "gateway_mqtt", "gateway_stomp", "gateway.management.web", "h11"]


def main(module: str, name: str, work: Path, seconds: int, runs: int) -> None:
    """Fuzz a target until the time or the number of runs is reached. ``work`` gets inputs, artifacts and findings."""
    import atheris

    with atheris.instrument_imports(include=_OF_CONNECTIONS if name.startswith("connection") else INSTRUMENTED):
        targets = import_module(module).TARGETS
    from tests.fuzz.decoders import trial
    from tests.fuzz.decoders.corpus import inputs_of
    from tests.fuzz.decoders.findings import Findings

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    target = next(each for each in targets if each.name == name)
    findings = Findings(work / "findings", name)
    inputs = work / "inputs" / name
    inputs.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs_of(target)):
        (inputs / f"seed-{number}").write_bytes(data)
    tokens = work / f"{name}.dict"
    tokens.write_text("".join(f'"{_as_hexadecimal(token)}"\n' for token in target.tokens), encoding="ascii")

    def run(data: bytes) -> None:
        try:
            trial.run(target, data)
        except Exception as error:
            findings.add(data, error)

    arguments = [
        sys.argv[0], str(inputs), f"-max_len={target.longest}", f"-max_total_time={seconds}", f"-timeout={_TIMEOUT_S}",
        f"-rss_limit_mb={_MOST_MIB}", f"-artifact_prefix={work}/findings/{name}-", "-print_final_stats=1",
    ]  # fmt: skip
    arguments += [f"-runs={runs}"] if runs else []
    arguments += [f"-dict={tokens}"] if target.tokens else []
    (work / "findings").mkdir(parents=True, exist_ok=True)
    fuzzer: Any = atheris
    fuzzer.Setup(arguments, run)
    fuzzer.Fuzz()


def _as_hexadecimal(token: bytes) -> str:
    return "".join(f"\\x{octet:02x}" for octet in token)


if __name__ == "__main__":
    main(*sys.argv[1:3], Path(sys.argv[3]), *map(int, sys.argv[4:6]))
