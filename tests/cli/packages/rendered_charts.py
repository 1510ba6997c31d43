"""The chart as helm renders it, in ``charts``, so that its tests need no helm.

``PATH=... python -m tests.cli.packages.rendered_charts`` renders it anew, and lints it. A test compares the checksum in
the first line with that of the chart and the values.
"""

import hashlib
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

CHART: Final = Path(__file__).parents[3] / "etc" / "helm" / "gateway-broker"
RENDERED: Final = Path(__file__).parent / "charts"

#: Values of each case, as for ``--set-json``.
CASES: Final[Mapping[str, Mapping[str, str]]] = {
    "one-node": {"user.password": '"change-me"', "settings": '"[amqp]\\nheartbeat_s = 30"'},
    "cluster": {
        "user.existingSecret": '"mq-admin"',
        "replicas": "3",
        "cluster.servers": '["nats://nats-0.nats:4222", "nats://nats-1.nats:4222"]',
    },
    "certificate": {
        "user.password": '"change-me-too"',
        "settings": '"[amqp]\\nheartbeat_s = 30"',
        "extraEnv": '[{"name": "GATEWAY__TLS__CERTIFICATE", "value": "/run/certificate/tls.crt"},'
        ' {"name": "GATEWAY__TLS__KEY", "value": "/run/certificate/tls.key"}]',
        "extraVolumes": '[{"name": "certificate", "secret": {"secretName": "mq-certificate"}}]',
        "extraVolumeMounts": '[{"name": "certificate", "mountPath": "/run/certificate", "readOnly": true}]',
        "service.ports.amqps": "5671",
    },
}


def checksum(case: str) -> str:
    """Return the checksum of all that a case is rendered from."""
    text = hashlib.sha256(repr(sorted(CASES[case].items())).encode())
    for path in sorted(CHART.rglob("*")):
        if path.is_file():
            text.update(f"\0{path.relative_to(CHART)}\0".encode() + path.read_bytes())
    return text.hexdigest()


def documents(case: str) -> dict[tuple[str, str], Any]:
    """Return the rendered objects of a case, by kind and name."""
    found = yaml.safe_load_all((RENDERED / f"{case}.yaml").read_text(encoding="utf-8"))
    return {(one["kind"], one["metadata"]["name"]): one for one in found if one}


def render(case: str) -> str:
    """Return the chart as helm renders it with these values, as the release ``mq`` in the namespace ``prod``."""
    values = [word for key, value in CASES[case].items() for word in ("--set-json", f"{key}={value}")]
    subprocess.run(["helm", "lint", "--strict", CHART, *values], check=True)
    command = ["helm", "template", "mq", CHART, "--namespace", "prod", "--kube-version", "1.30.0", *values]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    """Render all cases."""
    RENDERED.mkdir(exist_ok=True)
    for case in CASES:
        text = f"# Written by tests/cli/packages/rendered_charts.py from {checksum(case)}\n{render(case)}"
        (RENDERED / f"{case}.yaml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
