"""The traces that operators start, which write to files, and the files."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.trace_files.line_writer import LineWriter
from gateway.management.trace_files.trace_file import TraceFile, TraceRequest

#: The directory of the files, below the data directory.
TRACE_FILES: Final = "traces"

#: Names of traces, which are names of files without ``.log``.
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
_SUFFIX: Final = ".log"

#: Traces at one time: each has a thread.
MAX_TRACES: Final = 20


class TraceFiles:
    """Owns the running traces by name, and the files in ``directory``. Traces end when the node stops."""

    def __init__(self, broker: Broker, directory: Path, max_file_size: int) -> None:
        self._broker = broker
        self._directory = directory
        self._max_file_size = max_file_size
        self._trace_by_name: dict[str, TraceFile] = {}

    def __iter__(self) -> Iterator[TraceFile]:
        return iter(list(self._trace_by_name.values()))

    def find(self, vhost: str, name: str) -> TraceFile | None:
        """Return a running trace of a virtual host."""
        trace = self._trace_by_name.get(name)
        return trace if trace is not None and trace.vhost == vhost else None

    def start(self, vhost: VirtualHost, request: TraceRequest) -> bool:
        """Start a trace, or replace the one with this name; return whether there was one.

        :raises PreconditionFailed: if the name is no name of a file, another virtual host uses it, there are too many
            traces, or the file cannot be opened.
        """
        name = request.name
        if not _NAME.fullmatch(name):
            raise PreconditionFailed(f"'{name}' is not a name of a file: use letters, digits, '.', '_' and '-'")
        other = self._trace_by_name.get(name)
        if other is not None and other.vhost != vhost.name:
            raise PreconditionFailed(f"a trace of vhost '{other.vhost}' writes to the file '{name}{_SUFFIX}'")
        if other is None and len(self._trace_by_name) >= MAX_TRACES:
            raise PreconditionFailed(f"there are {MAX_TRACES} traces already")
        writer = self._open(f"{name}{_SUFFIX}")
        existed = self.stop(vhost.name, name)
        trace = TraceFile(request, vhost.name, self._broker.node, writer, self._broker.clock.wall_ms)
        self._trace_by_name[name] = trace
        self._broker.plugins_in_use.add_tracer(vhost, trace)
        return existed

    def stop(self, vhost: str, name: str) -> bool:
        """Stop a trace; return whether it was running. Its file stays."""
        trace = self.find(vhost, name)
        if trace is None:
            return False
        del self._trace_by_name[name]
        existing = self._broker.vhost_by_name.get(vhost)
        if existing is not None:
            self._broker.plugins_in_use.remove_tracer(existing, trace)
        trace.writer.close()
        return True

    def forget_deleted(self, event: Event) -> None:
        """Stop the traces of a virtual host that is deleted; other events are ignored."""
        if event.name == "vhost.deleted":
            for trace in self:
                self.stop(event.vhost, trace.request.name)

    def close(self) -> None:
        """Write what waits, when the node stops."""
        for trace in self:
            trace.writer.close(waits=True)
        self._trace_by_name.clear()

    # Files

    def files(self) -> list[tuple[str, int]]:
        """Return names and sizes of the files, in bytes."""
        if not self._directory.is_dir():
            return []
        entries = [entry for entry in os.scandir(self._directory) if entry.is_file(follow_symlinks=False)]
        return sorted((entry.name, entry.stat(follow_symlinks=False).st_size) for entry in entries)

    def path_of(self, name: str) -> Path | None:
        """Return the path of a file; ``None`` if it does not exist."""
        return self._directory / name if name in dict(self.files()) else None

    def delete(self, name: str) -> None:
        """Delete a file that exists. :raises PreconditionFailed: if a trace writes to it."""
        if name.removesuffix(_SUFFIX) in self._trace_by_name:
            raise PreconditionFailed(f"the trace '{name.removesuffix(_SUFFIX)}' writes to this file: stop it first")
        (self._directory / name).unlink(missing_ok=True)

    def _open(self, name: str) -> LineWriter:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            return LineWriter(self._directory / name, self._max_file_size)
        except OSError as error:
            raise PreconditionFailed(f"the file '{name}' cannot be opened: {error.strerror}") from None
