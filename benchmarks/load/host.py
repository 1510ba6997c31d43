"""The machine of a result, described without its name."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Host:
    """The machine properties needed to judge figures."""

    processor: str
    cores: int
    memory_gib: int
    kernel: str
    python: str
    filesystem: str

    @property
    def slug(self) -> str:
        """A short form for file names."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.processor} {self.cores} cores".lower()).strip("-")

    def __str__(self) -> str:
        return (
            f"{self.processor}, {self.cores} cores, {self.memory_gib} GiB memory, {self.kernel}, "
            f"Python {self.python}, data on {self.filesystem}"
        )


def describe(directory: Path) -> Host:
    """Return a description of this machine and of the filesystem with the brokers' data."""
    return Host(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        memory_gib=round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB),
        kernel=f"{platform.system()} {platform.release().split('-')[0]}",
        python=platform.python_version(),
        filesystem=_filesystem(directory.resolve()),
    )


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def _filesystem(directory: Path) -> str:
    """Return the type of the innermost mount that contains the directory."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [(mount, kind) for mount, kind in mounts if directory.is_relative_to(mount)]
    return max(holding, key=lambda each: len(each[0]))[1] if holding else "an unknown filesystem"
