"""Facts of the machine that a price depends on; never who runs it or what it is called."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def processor_name() -> str:
    """The processor's model as it calls itself, without trademark signs; the architecture where it does not say."""
    text = _text(Path("/proc/cpuinfo"))
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE) or re.search(
        r"^Model\s*:\s*(.+)$", text, re.MULTILINE
    )
    name = found[1] if found else _brand_of_mac() or platform.machine() or "unknown"
    return " ".join(re.sub(r"\((?:R|TM)\)", "", name).split())[:150]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Memory of the machine, or of the control group that limits this process."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _text(Path("/sys/fs/cgroup/memory.max")).strip()
    return min(total, int(limit)) if limit.isdigit() else total


def available_bytes() -> int:
    """Memory that is free to use now: what the kernel says, and what the control group leaves."""
    found = re.search(r"^MemAvailable:\s*(\d+) kB", _text(Path("/proc/meminfo")), re.MULTILINE)
    free = int(found[1]) * 1024 if found else memory_bytes() // 2
    used = _text(Path("/sys/fs/cgroup/memory.current")).strip()
    return min(free, max(0, memory_bytes() - int(used))) if used.isdigit() else free


def software(library: str) -> dict[str, str]:
    """Versions that decide how fast the kernels of `library` are."""
    names = ("numpy",) if library == "numpy" else ("torch", "numpy")
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def slug(text: str) -> str:
    """A profile's name from a device's."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:80] or "device"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _brand_of_mac() -> str:
    if platform.system() != "Darwin":
        return ""
    import subprocess

    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
