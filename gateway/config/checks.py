"""Checks across settings: combinations that contradict each other and files that are missing."""

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from gateway.config.archive import ArchiveSettings, catalogue_properties
from gateway.config.cluster import Cluster
from gateway.config.settings import Settings

_HEADER: Final = r"[^\s=,:]+=[^,\r\n]*"
_HEADERS: Final = re.compile(rf"({_HEADER}(,{_HEADER})*)?")

#: A URI, of which a path keeps one slash; it would be taken for a directory below the working directory.
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]+:/")


def contradictions(settings: Settings) -> list[str]:
    """Return one line for each contradiction, starting with the key to change."""
    return [
        *_tls(settings),
        *_statsd(settings),
        *_otlp(settings),
        *_archive(settings),
        *_bodies(settings),
        *_cluster(settings),
        *_missing_files(settings),
    ]


def _tls(settings: Settings) -> Iterator[str]:
    tls = settings.tls
    if tls.certificate is not None and tls.key is None:
        yield "tls.key: must be the path of the private key when tls.certificate is set"
    if tls.key is not None and tls.certificate is None:
        yield "tls.certificate: must be the path of the certificate when tls.key is set"
    if tls.further_certificates and tls.certificate is None:
        yield "tls.certificate: must be the path of the certificate for other clients of tls.further_certificates"
    ports = {
        "amqps": settings.amqps.port,
        "mqtts": settings.mqtts.port,
        "web_mqtts": settings.web_mqtts.port,
        "stomps": settings.stomps.port,
        "web_stomps": settings.web_stomps.port,
        "management_tls": settings.management_tls.port,
        "prometheus_tls": settings.prometheus_tls.port,
    }
    for name, port in ports.items():
        if port is not None and tls.certificate is None:
            yield f'{name}.port: must be "off", or tls.certificate and tls.key must be set'
    if tls.verify != "off" and tls.ca is None:
        yield 'tls.ca: must be the path of the trusted certificates unless tls.verify is "off"'


def _statsd(settings: Settings) -> Iterator[str]:
    host = settings.statsd.host
    if host:
        try:
            ip_address(host)
        except ValueError:
            yield f'statsd.host: must be an IPv4 or IPv6 address, or "", not {host[:100]!r}'


def _otlp(settings: Settings) -> Iterator[str]:
    rules = settings.otlp
    if not _HEADERS.fullmatch(rules.headers.get_secret_value()):
        yield 'otlp.headers: must have the form "name=value,name=value", or be ""'  # without the value: it is secret
    if rules.endpoint and not _has_exporter():
        yield "otlp.endpoint: needs libraries: pip install 'gateway-broker[opentelemetry]'"


def _has_exporter() -> bool:
    """Return whether the exporter of OpenTelemetry is installed."""
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False


def _archive(settings: Settings) -> Iterator[str]:
    archive, usual = settings.archive, ArchiveSettings()
    if find_spec("pyarrow") is None:
        for name, vhost in settings.vhosts.items():
            if vhost.trace_table:
                yield f'vhosts."{name}".trace_table: needs the Python library pyarrow, which is not installed'
        if settings.streams.encode == "sealed":
            yield "streams.encode: needs the Python library pyarrow, which is not installed"
    if archive.directory is not None and _URI.match(str(archive.directory)):
        yield (
            f'archive.directory: must be a directory of this machine, not "{archive.directory}"; tables in an object '
            'store need archive.format = "iceberg" and archive.warehouse'
        )
    if not _HEADERS.fullmatch(archive.catalog_properties.get_secret_value()):
        yield 'archive.catalog_properties: must have the form "name=value,name=value", or be ""'  # it is secret
    if archive.format != "iceberg":
        for key in ("warehouse", "catalog", "catalog_properties", "namespace", "schemas", "snapshots"):
            if getattr(archive, key) != getattr(usual, key):
                yield f'archive.{key}: has no effect unless archive.format is "iceberg"'
        return
    if archive.warehouse and not archive.catalog and "uri" not in catalogue_properties(archive):
        yield "archive.catalog: must be set with archive.warehouse: other machines cannot use a file of this one"
    missing = [name for name in ("pyiceberg", "sqlalchemy") if find_spec(name) is None]
    if missing:
        yield f"archive.format: needs {' and '.join(missing)}: pip install 'gateway-broker[archive]'"


def _bodies(settings: Settings) -> Iterator[str]:
    if settings.management.max_bodies_size < settings.management.max_body_size:
        yield "management.max_bodies_size: must be at least management.max_body_size"


def _cluster(settings: Settings) -> Iterator[str]:
    cluster = settings.cluster
    if not cluster.servers:
        usual = Cluster()
        for key in Cluster.model_fields:
            if getattr(cluster, key) != getattr(usual, key):
                yield f"cluster.{key}: has no effect without cluster.servers"
        return
    if settings.storage.engine != "lmdb":
        yield 'storage.engine: must be "lmdb" with cluster.servers, for the copy on the disk of this node'
    if (cluster.certificate is None) != (cluster.key is None):
        missing = "key" if cluster.key is None else "certificate"
        yield f"cluster.{missing}: cluster.certificate and cluster.key belong together"
    logins = {"user": cluster.user, "token": cluster.token.get_secret_value(), "credentials": cluster.credentials}
    if len(used := [name for name, value in logins.items() if value]) > 1:
        yield f"cluster.{used[1]}: only one of cluster.user, cluster.token and cluster.credentials may be set"


def _missing_files(settings: Settings) -> Iterator[str]:
    tls = settings.tls
    files = {
        "tls.certificate": tls.certificate,
        "tls.key": tls.key,
        "cluster.credentials": settings.cluster.credentials,
        "cluster.ca": settings.cluster.ca,
        "cluster.certificate": settings.cluster.certificate,
        "cluster.key": settings.cluster.key,
        "tls.ca": tls.ca,
        "load_definitions": settings.load_definitions,
    }
    further = [("tls.further_certificates", Path(file)) for file in tls.further_certificates]
    for key, file in (*files.items(), *further):
        if file is not None and not _is_readable(file):
            yield f"{key}: must be a file that can be read, not {str(file)!r}"
    if settings.plugins_dir is not None and not settings.plugins_dir.is_dir():
        yield f"plugins_dir: must be a directory, not {str(settings.plugins_dir)!r}"
    if settings.archive.schemas is not None and not settings.archive.schemas.is_dir():
        yield f"archive.schemas: must be a directory, not {str(settings.archive.schemas)!r}"


def _is_readable(file: Path) -> bool:
    return file.is_file() and os.access(file, os.R_OK)
