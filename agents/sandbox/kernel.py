"""The Linux calls that Python 3.11 does not offer: namespaces, mounts, capabilities, prctl and seccomp."""

import ctypes
import os
import platform
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2

_SYS_MOUNT_SETATTR = 442  # the same on every architecture
_AT_RECURSIVE = 0x8000
_AT_FDCWD = -100
_MOUNT_ATTR_RDONLY = 1
_MOUNT_ATTR_NOSUID = 2
_MOUNT_ATTR_NODEV = 4
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_LAST_CAPABILITY = 63
_CAPABILITY_VERSION_3 = 0x20080522

_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones; raises OSError where that is not allowed."""
    _checked(_LIBC.unshare(flags), f"unshare({flags:#x})")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Attach a file system, or with MS_BIND a folder, at `target`; raises OSError."""
    result = _LIBC.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _checked(result, f"mount {kind or source} on {target}")


def make_read_only(target: str) -> None:
    """Everything mounted at or below `target` becomes read-only, without devices or set-user-id (Linux 5.12)."""
    wanted = struct.pack("QQQQ", _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV, 0, 0, 0)
    result = _LIBC.syscall(
        _SYS_MOUNT_SETATTR, _AT_FDCWD, target.encode(), _AT_RECURSIVE, wanted, ctypes.c_size_t(len(wanted))
    )
    _checked(result, f"mount_setattr {target}")


def pivot_into(root: str) -> None:
    """Make the mount at `root` the root of this mount namespace and let go of the old one."""
    number = _SYS_PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root is not known for {platform.machine()}")
    os.chdir(root)
    _checked(_LIBC.syscall(number, b".", b"."), "pivot_root")
    _checked(_LIBC.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def prctl(option: int, value: int) -> None:
    """Change one property of this process; raises OSError."""
    _checked(
        _LIBC.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)),
        f"prctl({option})",
    )


def drop_capabilities() -> None:
    """Give up every capability, for this process and all it starts."""
    _LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for capability in range(_LAST_CAPABILITY + 1):
        # Fails for those the kernel does not know and where we may not; capset below decides.
        _LIBC.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_LIBC.capset(header, bytes(24)), "capset")


def install_filter(program: bytes) -> None:
    """Put a seccomp filter over this process and all it starts; needs PR_SET_NO_NEW_PRIVS."""
    instructions = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: an unsigned short, padding, a pointer.
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    buffer = ctypes.create_string_buffer(described, len(described))
    _checked(
        _LIBC.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), buffer, ctypes.c_ulong(0), 0),
        "seccomp",
    )
