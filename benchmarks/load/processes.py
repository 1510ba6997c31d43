"""Process statistics from the system: CPU time and resident memory; limits, and the end of processes."""

import os
import resource
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class NotListening(Exception):
    """A broker ended, or did not accept connections in time; the message ends with its last output."""


def cpu_seconds(pid: int) -> float:
    """Return user plus system time of all living threads of a process and its descendants, to the nanosecond.

    Threads that ended are not included. ``/proc/PID/stat`` would include them, but in ticks of 10 ms.
    """
    tasks = [task for each in _family(pid) for task in Path(f"/proc/{each}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def main_thread_cpu_seconds(pid: int) -> float:
    """Return user plus system time of a process's first thread, to the nanosecond."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and its descendants."""
    return sum(int(_stat(each)[21]) for each in _family(pid)) * PAGE_BYTES


def peak_resident_bytes(pid: int) -> int:
    """Return the peak resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    (peak_kib,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak_kib) * 1024


def directory_bytes(directory: Path) -> int:
    """Return the disk space of everything below a directory, without holes."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


def raise_descriptor_limit(wanted: int) -> int:
    """Allow this many open files for this process and those it starts, or as many as may be; return how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def free_port() -> int:
    """Return a free TCP port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(process: subprocess.Popen[bytes], port: int, output: Path, timeout_s: float) -> None:
    """Return as soon as the process accepts connections on the port."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise NotListening(f"ended with status {process.returncode}:\n{_tail(output)}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise NotListening(f"nothing listens on port {port} after {timeout_s:.0f} s:\n{_tail(output)}")


def stop(process: subprocess.Popen[bytes], timeout_s: float = 60.0) -> None:
    """Ask a process we started to end, and kill it if it does not."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _family(pid: int) -> list[int]:
    """Return the process and all its living descendants."""
    parent_by_pid: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent_by_pid[int(entry.name)] = int(_stat(int(entry.name))[1])
            except OSError:  # it ended meanwhile
                continue
    family = [pid]
    for member in family:
        family.extend(child for child, parent in parent_by_pid.items() if parent == member)
    return family


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on: 1 parent, 21 resident pages."""
    # The second field, the command, may contain blanks and parentheses; the last parenthesis ends it.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _tail(output: Path, lines: int = 15) -> str:
    return "\n".join(output.read_text(errors="replace").splitlines()[-lines:]) if output.exists() else ""
