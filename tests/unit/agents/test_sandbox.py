"""What the sandbox decides without a process: which system calls pass, what a manifest may say."""

import errno
import os
import struct
import subprocess
import sys

import pytest

from agents.engines.settings import ProcessSettings
from agents.sandbox.process_tree import tree_use
from agents.sandbox.syscall_filter import build_filter

ALLOWED = "allowed"
KILLED = "killed"
X86, ARM = ("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)
THREAD = 0x00010000
NEW_USER = 0x10000000


def decide(program: bytes, architecture: int, number: int, argument: int = 0) -> str | int:
    """Run a seccomp program as the kernel would: the error it gives, or "allowed" or "killed"."""
    data = struct.pack("IIQQ", number, architecture, 0, argument)
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("HBBI", program, at * 8)
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("I", data, value)
        elif code == 0x06:
            kind, error = value & 0xFFFF0000, value & 0xFFFF
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(kind, error)
        else:
            holds = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", [X86, ARM], ids=["x86_64", "aarch64"])
def test_the_filter_refuses_what_reaches_others_and_passes_the_rest(machine: tuple[str, int]) -> None:
    name, architecture = machine
    read, ptrace, socket, clone = {"x86_64": (0, 101, 41, 56), "aarch64": (63, 117, 198, 220)}[name]
    program = build_filter(network=False, own_pid=None, may_fork=True, machine=name)
    assert program is not None
    assert decide(program, architecture, read) == ALLOWED
    assert decide(program, architecture, ptrace) == errno.EPERM
    assert decide(program, architecture, socket) == errno.EACCES
    assert decide(program, architecture, 435) == errno.ENOSYS
    assert decide(program, architecture, clone) == ALLOWED
    assert decide(program, architecture, clone, NEW_USER | THREAD) == errno.EPERM
    assert decide(program, 0x40000003, read) == KILLED
    online = build_filter(network=True, own_pid=None, may_fork=False, machine=name)
    assert online is not None
    assert decide(online, architecture, socket) == ALLOWED
    assert decide(online, architecture, clone) == errno.EAGAIN
    assert decide(online, architecture, clone, THREAD) == ALLOWED


@pytest.mark.parametrize("machine", [X86, ARM], ids=["x86_64", "aarch64"])
def test_without_a_pid_namespace_it_signals_itself_only(machine: tuple[str, int]) -> None:
    name, architecture = machine
    kill, tkill, tgkill = {"x86_64": (62, 200, 234), "aarch64": (129, 130, 131)}[name]
    program = build_filter(network=False, own_pid=4711, may_fork=True, machine=name)
    assert program is not None
    seen = [decide(program, architecture, kill, pid & 0xFFFFFFFF) for pid in (4711, 0, 4712, 1, -1, -4711)]
    assert seen == [ALLOWED, ALLOWED, *[errno.EPERM] * 4]
    assert decide(program, architecture, tgkill, 4711) == ALLOWED
    assert decide(program, architecture, tgkill, 1) == errno.EPERM
    assert decide(program, architecture, tkill, 4711) == errno.EPERM


def test_calls_by_the_other_numbers_of_x86_are_not_a_way_around() -> None:
    program = build_filter(network=False, own_pid=None, may_fork=True, machine="x86_64")
    assert program is not None
    assert decide(program, X86[1], 0x40000000 | 101) == KILLED
    assert decide(program, X86[1], 57) == ALLOWED
    single = build_filter(network=False, own_pid=None, may_fork=False, machine="x86_64")
    assert single is not None
    assert [decide(single, X86[1], number) for number in (57, 58)] == [errno.EAGAIN] * 2


def test_there_is_no_filter_for_a_machine_that_is_not_known() -> None:
    assert build_filter(network=False, own_pid=None, may_fork=True, machine="riscv64") is None


def test_a_tree_is_counted_with_what_its_processes_started() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(input())'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        while len((use := tree_use(os.getpid())).pids) < 2:
            assert child.poll() is None
        assert child.pid in use.pids
        assert use.tasks >= 2
        assert use.memory_bytes > 1_000_000
        child.communicate(b"done\n")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"callable": "a:b", "command": ["x"]},
        {"callable": "no colon"},
        {"callable": "a:b", "path": "relative"},
        {"command": [""]},
        {"callable": "a:b", "workers": 0},
        {"callable": "a:b", "secret": "x"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ProcessSettings.model_validate(settings)
