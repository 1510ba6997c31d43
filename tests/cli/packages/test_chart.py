"""The chart as helm renders it: nodes that reach each other, secrets, volumes, probes."""

from typing import Any, Final

import pytest

from gateway.config import load
from tests.cli.packages.rendered_charts import CASES, RENDERED, checksum, documents

NAME: Final = "mq-gateway-broker"


def pod(case: str) -> Any:
    """Return the pod of the nodes."""
    return documents(case)["StatefulSet", NAME]["spec"]["template"]


def container(case: str) -> Any:
    """Return the container of a node."""
    return pod(case)["spec"]["containers"][0]


def variables(case: str) -> dict[str, str]:
    """Return the variables of a node as Kubernetes sets them for the pod ``mq-0``."""
    found: dict[str, str] = {}
    for variable in container(case)["env"]:
        value = variable.get("value", "mq-0")
        for name, known in found.items():
            value = value.replace(f"$({name})", known)
        found[variable["name"]] = value
    return found


@pytest.mark.parametrize("case", CASES)
def test_what_is_tested_is_the_chart_of_today(case: str) -> None:
    first = (RENDERED / f"{case}.yaml").read_text().partition("\n")[0]
    assert first.endswith(checksum(case)), "render it: python -m tests.cli.packages.rendered_charts, which needs helm"


@pytest.mark.parametrize("case", CASES)
def test_the_variables_of_a_node_are_settings(case: str, tmp_path: Any) -> None:
    (tmp_path / "password").write_text("secret")
    (tmp_path / "certificate").touch()
    paths = {
        "GATEWAY__DEFAULT_PASS_FILE": "password",
        "GATEWAY__TLS__CERTIFICATE": "certificate",
        "GATEWAY__TLS__KEY": "certificate",
    }
    environment = {
        name: str(tmp_path / paths[name]) if name in paths else value for name, value in variables(case).items()
    }
    settings = load(None, (), environment)
    assert (settings.node, settings.default_user) == ("mq-0", "admin")
    assert settings.default_pass.get_secret_value() == "secret"


def test_nodes_of_a_cluster_reach_each_other_at_names_of_the_headless_service() -> None:
    environment = variables("cluster")
    assert environment["GATEWAY__CLUSTER__HOST"] == f"mq-0.{NAME}-nodes.prod.svc"
    settings = load(None, (), {name: environment[name] for name in environment if "__CLUSTER__" in name})
    assert settings.cluster.servers == ["nats://nats-0.nats:4222", "nats://nats-1.nats:4222"]
    headless = documents("cluster")["Service", f"{NAME}-nodes"]["spec"]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)
    assert documents("cluster")["StatefulSet", NAME]["spec"]["serviceName"] == f"{NAME}-nodes"
    assert {port["name"]: port["port"] for port in headless["ports"]}["cluster"] == settings.cluster.port
    assert documents("cluster")["PodDisruptionBudget", NAME]["spec"]["maxUnavailable"] == 1


def test_one_node_is_no_cluster_and_blocks_no_drain() -> None:
    assert not [name for name in variables("one-node") if "CLUSTER" in name]
    assert not [kind for kind, _ in documents("one-node") if kind == "PodDisruptionBudget"]


def test_no_annotation_depends_on_the_password() -> None:
    one, other = (pod(case)["metadata"]["annotations"] for case in ("one-node", "certificate"))
    assert one == other
    assert one != pod("cluster")["metadata"]["annotations"]  # which has other settings


def test_a_secret_of_ones_own_replaces_that_of_the_chart() -> None:
    secrets = {
        case: [
            volume["secret"]["secretName"] for volume in pod(case)["spec"]["volumes"] if volume["name"] == "password"
        ]
        for case in ("one-node", "cluster")
    }
    assert secrets == {"one-node": [NAME], "cluster": ["mq-admin"]}
    assert documents("one-node")["Secret", NAME]["stringData"] == {"password": "change-me"}
    assert not [kind for kind, _ in documents("cluster") if kind == "Secret"]


def test_each_port_of_the_service_is_one_of_the_container() -> None:
    listeners = {port["name"] for port in container("certificate")["ports"]}
    targets = {port["targetPort"] for port in documents("certificate")["Service", NAME]["spec"]["ports"]}
    assert targets <= listeners
    assert "amqps" in targets


def test_each_mount_has_a_volume_and_the_root_is_read_only() -> None:
    for case in CASES:
        claims = documents(case)["StatefulSet", NAME]["spec"]["volumeClaimTemplates"]
        volumes = {volume["name"] for volume in pod(case)["spec"]["volumes"]} | {
            one["metadata"]["name"] for one in claims
        }
        assert {mount["name"] for mount in container(case)["volumeMounts"]} == volumes
        assert container(case)["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {mount["name"]: mount["mountPath"] for mount in container("certificate")["volumeMounts"]}
    assert mounts["certificate"] == "/run/certificate"


def test_the_settings_of_the_chart_are_those_of_the_file(tmp_path: Any) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text(documents("one-node")["ConfigMap", NAME]["data"]["gateway.toml"])
    assert load(file).amqp.heartbeat_s == 30


def test_a_node_that_does_not_serve_clients_gets_none_and_is_not_restarted() -> None:
    node = container("one-node")
    check = ["/opt/gateway/bin/python3", "/opt/gateway/bin/healthy.py"]
    assert node["startupProbe"]["exec"]["command"] == node["readinessProbe"]["exec"]["command"] == check
    assert node["startupProbe"]["failureThreshold"] * node["startupProbe"]["periodSeconds"] == 600
    assert node["livenessProbe"]["tcpSocket"] == {"port": "amqp"}
