"""What the agent's process does to itself before any code of the agent runs."""

import contextlib
import errno
import os
import resource
import signal
from dataclasses import dataclass, field

from agents.sandbox import kernel
from agents.sandbox.syscall_filter import build_filter

ROOT_NAMESPACES = "root_namespaces"
"""Started as root: own pid, mount, IPC and network namespaces, and a user of its own."""
USER_NAMESPACES = "user_namespaces"
"""Started as a user: the same inside a user namespace; files it sees are read as that user."""
OTHER_USER = "other_user"
"""Started as root where namespaces are refused: a user of its own."""
SAME_USER = "same_user"
"""Started as a user where namespaces are refused: limits and the system call filter only."""

NAMESPACED = (ROOT_NAMESPACES, USER_NAMESPACES)

_FIRST_USER = 1_900_000_000
_NOBODY = 65_534
_OPEN_FILES = 256
_ROOM_FOR_OTHERS = 200
_SYSTEM_FILES = (
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/alternatives",
    "/etc/hosts",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/passwd",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/mime.types",
)
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SCRATCH = "/scratch"
"""Its working folder in a mount namespace of its own."""
_TMP = "/tmp"  # noqa: S108 - the agent's own, inside its own mount namespace
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """How an agent's process is held."""

    isolation: str
    """One of the four above."""
    visible: tuple[str, ...] = field(default_factory=tuple)
    """Folders it may read besides the system's; absolute, without symbolic links."""
    scratch: str
    """Its working folder where it has no mount namespace."""
    scratch_bytes: int
    """How large one of its files may be; with a mount namespace, all of them."""
    cpu_seconds: float
    memory_bytes: int
    """Private memory that the kernel gives each of its processes at most."""
    max_processes: int
    network: bool
    folder: str = ""
    """Where it starts; its scratch when empty."""


def user_of_warden(warden_pid: int) -> int:
    """The user id that root gives the agent of this warden: no two running ones share it."""
    return _FIRST_USER + warden_pid


def enter_pid_namespace(*, as_root: bool) -> None:
    """Make the next child of this process the first of a pid namespace; raises OSError where that is refused."""
    if as_root:
        kernel.unshare(kernel.CLONE_NEWPID)
        return
    user, group = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def confine(how: Confinement, *, warden_pid: int) -> bool:
    """Give up everything the agent is not allowed; there is no way back.

    Returns:
        Whether the system call filter is in force too.

    Raises:
        OSError: the kernel refused a part; the agent must then not run.
    """
    os.setsid()
    # The warden may have closed itself to others, and with it the files of this process in /proc.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    # Should memory run out on the machine, this process goes first.
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    if how.isolation in NAMESPACED:
        _own_view(how)
    else:
        os.chdir(how.scratch)
    _set_limits(how)
    if how.isolation in (ROOT_NAMESPACES, OTHER_USER):
        _become(user_of_warden(warden_pid))
        for place in how.visible:
            if not os.access(place, os.R_OK | os.X_OK):
                raise PermissionError(errno.EACCES, f"an agent's user may not read {place}; everybody must")
    if how.folder:
        os.chdir(how.folder)
    kernel.drop_capabilities()
    # Changing the user clears it, so it stands here. Should the warden die, so does this process.
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    program = build_filter(
        network=how.network,
        own_pid=None if how.isolation in NAMESPACED else os.getpid(),
        may_fork=how.max_processes > 1,
    )
    if program is not None:
        kernel.install_filter(program)
    return program is not None


def _own_view(how: Confinement) -> None:
    """A root of its own: the system and the named folders, read-only; an empty scratch; nothing else."""
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    kernel.unshare(flags if how.network else flags | kernel.CLONE_NEWNET)
    kernel.mount("", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    root = how.scratch
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID, "mode=755,size=1m")
    for place in sorted({*_SYSTEM_FOLDERS, *_SYSTEM_FILES, *how.visible}):
        _show(place, root)
    for made in ("/proc", "/dev", SCRATCH):
        os.makedirs(root + made, exist_ok=True)
    for device in _DEVICES:
        with open(root + device, "wb"):
            pass
    os.symlink(SCRATCH, root + _SHARED_MEMORY)
    if not os.path.lexists(root + _TMP):  # it exists where the agent's own folder lies there
        os.symlink(SCRATCH, root + _TMP)
    kernel.make_read_only(root)
    for device in _DEVICES:
        kernel.mount(device, root + device, "", kernel.MS_BIND)
    try:
        kernel.mount("proc", f"{root}/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    except OSError as error:
        # Inside some containers a user may not; the agent then has an empty /proc.
        if error.errno != errno.EPERM:
            raise
    sizes = f"mode=1777,size={how.scratch_bytes},nr_inodes=10000"
    kernel.mount("tmpfs", root + SCRATCH, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, sizes)
    kernel.pivot_into(root)
    os.chdir(SCRATCH)


def _show(place: str, root: str) -> None:
    if not os.path.lexists(place) or os.path.lexists(root + place):  # or it lies in a folder shown already
        return
    os.makedirs(os.path.dirname(root + place), exist_ok=True)
    if os.path.islink(place) and place in _SYSTEM_FOLDERS:
        os.symlink(os.readlink(place), root + place)
        return
    if os.path.isdir(place):
        os.mkdir(root + place)
    else:
        with open(root + place, "wb"):
            pass
    kernel.mount(place, root + place, "", kernel.MS_BIND | kernel.MS_REC)


def _set_limits(how: Confinement) -> None:
    # The warden measures each call; this one ends a process whose warden is kept from measuring.
    cpu = cpu_of_a_lifetime(how.cpu_seconds)
    # Somewhat more than allowed: the warden may count too, and it has to see that there are too many.
    tasks = how.max_processes + 4
    if how.isolation == SAME_USER:
        # Everything else that the user runs counts as well, and may grow.
        tasks += _tasks_of(os.getuid()) + _ROOM_FOR_OTHERS
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_DATA, how.memory_bytes),
        (resource.RLIMIT_FSIZE, how.scratch_bytes),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_NPROC, tasks),
    ):
        _, hard = resource.getrlimit(kind)
        lower = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (lower, lower))


def _tasks_of(user: int) -> int:
    """Threads that a user has now."""
    found = 0
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):  # it has just ended
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid == user:
                found += len(os.listdir(f"/proc/{entry}/task"))
    return found


def cpu_of_a_lifetime(cpu_seconds: float) -> int:
    """Processor seconds after which the kernel ends a process of the agent whatever else happens."""
    return 60 + 20 * int(cpu_seconds + 1)


def _become(user: int) -> None:
    os.setgroups([])
    try:
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as error:
        # A container that maps only the usual 65,536 users has none so high.
        if error.errno != errno.EINVAL:
            raise
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
