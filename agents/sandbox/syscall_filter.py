"""The system calls an agent is refused, as a seccomp program built without any library.

It is the second wall behind the namespaces and the first one where there are none. Only x86_64 and aarch64 are
known; elsewhere there is no program.
"""

import errno
import platform
import struct
from collections.abc import Mapping

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

_NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {
        "clone": 56, "fork": 57, "vfork": 58, "kill": 62, "tkill": 200, "tgkill": 234, "rt_sigqueueinfo": 129,
        "rt_tgsigqueueinfo": 297, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
        "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161,
        "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "keyctl": 250, "add_key": 248,
        "request_key": 249, "memfd_create": 319, "socket": 41, "prctl": 157, "open_by_handle_at": 304,
        "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246, "shmget": 29,
    },
    "aarch64": {
        "clone": 220, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138,
        "rt_tgsigqueueinfo": 240, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271,
        "unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51,
        "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "keyctl": 219, "add_key": 217,
        "request_key": 218, "memfd_create": 279, "socket": 198, "prctl": 167, "open_by_handle_at": 265,
        "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104, "shmget": 194,
    },
}  # fmt: skip
_NEWER = {
    "clone3": 435, "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsmount": 432, "pidfd_open": 434, "pidfd_getfd": 438, "mount_setattr": 442,
    "memfd_secret": 447,
}  # fmt: skip
"""Numbers that all architectures share."""

_NEVER = (
    # Looking into, or reaching for, other processes.
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd", "pidfd_send_signal",
    "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    # New namespaces and mounts: whatever needs them needs what an agent does not get.
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsmount",
    "mount_setattr", "open_by_handle_at",
    # Large and little used parts of the kernel.
    "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "init_module", "finit_module",
    "delete_module", "kexec_load", "io_uring_setup",
    # Memory that no process has mapped and no limit counts.
    "memfd_create", "memfd_secret", "shmget",
)  # fmt: skip

_CLONE_THREAD = 0x00010000
_CLONE_NEW_ANY = 0x7E020080  # every CLONE_NEW* flag, CLONE_NEWTIME too

_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL = 0x80000000

_OFFSET_NUMBER = 0
_OFFSET_ARCHITECTURE = 4
_OFFSET_FIRST_ARGUMENT = 16  # its low half; both architectures are little-endian


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def build_filter(*, network: bool, own_pid: int | None, may_fork: bool, machine: str = "") -> bytes | None:
    """The program, or None where the architecture is not known.

    Args:
        network: Sockets may be made.
        own_pid: The agent's process may signal itself and nobody else; None where a namespace already sees to it.
        may_fork: False: threads only.
        machine: As `platform.machine()` says; this one when empty.
    """
    machine = machine or platform.machine()
    if machine not in _NUMBERS:
        return None
    numbers = {**_NUMBERS[machine], **_NEWER}

    def refuse(error: int) -> bytes:
        return _op(_RETURN, _ERRNO | error)

    rules: list[tuple[str, bytes]] = [(name, refuse(errno.EPERM)) for name in _NEVER]
    # The C library then uses clone, whose flags a filter can see.
    rules.append(("clone3", refuse(errno.ENOSYS)))
    clone = [
        _op(_LOAD, _OFFSET_FIRST_ARGUMENT),
        _op(_JUMP_ANY_BIT, _CLONE_NEW_ANY, 0, 1),
        refuse(errno.EPERM),
    ]
    if not may_fork:
        clone += [_op(_JUMP_ANY_BIT, _CLONE_THREAD, 1, 0), refuse(errno.EAGAIN)]
        rules += [(name, refuse(errno.EAGAIN)) for name in ("fork", "vfork") if name in numbers]
    rules.append(("clone", b"".join([*clone, _op(_RETURN, _ALLOW)])))
    if not network:
        rules.append(("socket", refuse(errno.EACCES)))
    # Living on after the warden died is not the agent's choice.
    rules.append(("prctl", _first_argument_is((1,), found=refuse(errno.EPERM), otherwise=_op(_RETURN, _ALLOW))))
    if own_pid is not None:
        allowed = _op(_RETURN, _ALLOW)
        rules.append(("kill", _first_argument_is((own_pid, 0), found=allowed, otherwise=refuse(errno.EPERM))))
        rules.append(("tgkill", _first_argument_is((own_pid,), found=allowed, otherwise=refuse(errno.EPERM))))
        rules.append(("tkill", refuse(errno.EPERM)))
    program = [
        _op(_LOAD, _OFFSET_ARCHITECTURE),
        _op(_JUMP_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        program += [_op(_JUMP_AT_LEAST, _X32_BIT, 0, 1), _op(_RETURN, _KILL)]
    for name, body in rules:
        # Every body ends in a return, so the number is still loaded where the next rule begins.
        program += [_op(_JUMP_EQUAL, numbers[name], 0, len(body) // 8), body]
    program.append(_op(_RETURN, _ALLOW))
    return b"".join(program)


def _first_argument_is(values: tuple[int, ...], *, found: bytes, otherwise: bytes) -> bytes:
    body = [_op(_LOAD, _OFFSET_FIRST_ARGUMENT)]
    for value in values:
        body += [_op(_JUMP_EQUAL, value & 0xFFFFFFFF, 0, 1), found]
    return b"".join([*body, otherwise])
