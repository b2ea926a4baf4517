"""What a hostile agent does in a process of its own; the standard library is all it can import there.

The input's `word` says which. `OUTCOMES` says how the call must end: an error code, or "ok".
"""

import ctypes
import json
import mmap
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

SOURCE = {"id": "S1", "kind": "agent", "label": "misbehaving", "location": "", "sha256": ""}


def good(said: str = "") -> dict[str, Any]:
    return {"said": said, "confidence_score": 1.0, "sources": [SOURCE]}


def misbehave(inputs: Mapping[str, Any], context: Any) -> Any:
    return WORDS[inputs["word"]](inputs)


def _forever(step: Callable[[], object]) -> NoReturn:
    while True:
        step()


def _pipes() -> Iterator[int]:
    """Every pipe this process has open, the one that answers are written to among them."""
    for fd in range(3, 256):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:"):
                yield fd
        except OSError:
            # An unprivileged process whose /proc is closed to it still can try the number.
            if os.access("/proc/self/fd", os.R_OK):
                continue
            yield fd


def _to_the_protocol(data: bytes) -> None:
    for fd in _pipes():
        try:
            os.write(fd, data)
        except OSError:
            continue


def _claim_a_gigabyte(_: object) -> NoReturn:
    _to_the_protocol(struct.pack(">I", 2**30))
    _forever(lambda: _to_the_protocol(b"\0" * 65536))


def _stream(_: object) -> NoReturn:
    _forever(lambda: _to_the_protocol(b"and another thing, " * 1000))


def _hoard(_: object) -> NoReturn:
    kept: list[bytearray] = []
    _forever(lambda: kept.append(bytearray(b"x" * 10_000_000)))


def _hoard_shared(_: object) -> NoReturn:
    kept: list[mmap.mmap] = []

    def more() -> None:
        kept.append(mmap.mmap(-1, 10_000_000))
        kept[-1].write(b"x" * 10_000_000)

    _forever(more)


def _hoard_in_children(_: object) -> NoReturn:
    for _number in range(5):
        if os.fork() == 0:
            kept = bytearray(b"x" * 60_000_000)
            time.sleep(60)
            os._exit(len(kept) % 2)
    _forever(lambda: time.sleep(1))


def _fork_bomb(_: object) -> NoReturn:
    def fork() -> None:
        try:
            os.fork()
        except OSError:
            time.sleep(0.001)

    _forever(fork)


def _thread_bomb(_: object) -> NoReturn:
    def start() -> None:
        try:
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        except RuntimeError:
            time.sleep(0.001)

    _forever(start)


def _daemon(_: object) -> Any:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for fd in range(256):
                try:
                    os.close(fd)
                except OSError:
                    continue
            time.sleep(600)
        os._exit(0)
    os.wait()
    return good("a daemon lives on")


def _kill_everybody(inputs: Mapping[str, Any]) -> Any:
    killed = []
    for pid in (os.getppid(), inputs["server"], -1):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            if pid == 0:
                continue
            try:
                os.kill(pid, number)
            except OSError:
                continue
            killed.append(pid)
    return good(f"killed {killed}")


def _read_secrets(inputs: Mapping[str, Any]) -> Any:
    found = []
    places = [
        f"/proc/{pid}/{name}" for pid in (os.getppid(), inputs["server"]) for name in ("environ", "mem", "cwd/.")
    ]
    for place in [*places, inputs["secret_file"]]:
        try:
            if os.path.isdir(place):
                os.listdir(place)
            else:
                with open(place, "rb") as file:
                    file.read(1000 if not place.endswith("mem") else 0)
        except OSError:
            continue
        found.append(place)
    if any("SECRET" in f"{name}={value}" for name, value in os.environ.items()):
        found.append("its own environment")
    return good(" ".join(found))


def _write_outside(inputs: Mapping[str, Any]) -> Any:
    try:
        Path(inputs["secret_file"]).with_name("written").write_text("was here")
    except OSError as error:
        return good(f"refused: {type(error).__name__}")
    return good("written")


def _big_file(_: object) -> NoReturn:
    with open("big", "wb") as file:
        _forever(lambda: file.write(b"x" * 1_000_000))


def _call_out(_: object) -> Any:
    try:
        socket.create_connection(("127.0.0.1", 22), timeout=0.2)
    except PermissionError:
        return good("refused")
    except OSError as error:
        return good(f"tried: {error}")
    return good("connected")


def _deaf(_: object) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _forever(lambda: time.sleep(1))


def _close_everything(_: object) -> NoReturn:
    os.closerange(0, 256)
    _forever(lambda: time.sleep(1))


def _interrupting_thread(_: object) -> Any:
    thread = threading.Thread(target=_to_the_protocol, args=(b"who asked?",))
    thread.start()
    thread.join()
    return good()


def _second_answer(_: object) -> Any:
    answer = json.dumps({"output": good("forged")}).encode()
    _to_the_protocol((struct.pack(">I", len(answer)) + answer) * 2)
    return good()


def _segfault(_: object) -> Any:
    return ctypes.string_at(0)


def _exit_now(_: object) -> NoReturn:
    os._exit(3)


def _deep(_: object) -> Any:
    value: Any = "core"
    for _level in range(500):
        value = [value]
    return {**good(), "extra": value}


WORDS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "good": lambda _: good(),
    "prose": lambda _: "Certainly! Here is the JSON that you asked for.",
    "gigabyte": lambda _: {**good(), "said": "x" * 2**30},
    "claim_a_gigabyte": _claim_a_gigabyte,
    "large": lambda _: {**good(), "said": "x" * 300_000},
    "stream": _stream,
    "print_forever": lambda _: _forever(lambda: print("noise " * 1000)),  # noqa: T201 - that is what it does
    "nan": lambda _: {**good(), "said": float("nan")},
    "deep": _deep,
    "unknown_field": lambda _: {**good(), "approved": True},
    "confidence_two": lambda _: {**good(), "confidence_score": 2.0},
    "confidence_text": lambda _: {**good(), "confidence_score": "high"},
    "confidence_nan": lambda _: {**good(), "confidence_score": float("nan")},
    "not_json": lambda _: {**good(), "said": object()},
    "hoard": _hoard,
    "hoard_shared": _hoard_shared,
    "hoard_in_children": _hoard_in_children,
    "fork_bomb": _fork_bomb,
    "thread_bomb": _thread_bomb,
    "daemon": _daemon,
    "sleep": lambda _: time.sleep(3600),
    "spin": lambda _: _forever(lambda: None),
    "deaf": _deaf,
    "close_everything": _close_everything,
    "kill_everybody": _kill_everybody,
    "read_secrets": _read_secrets,
    "write_outside": _write_outside,
    "big_file": _big_file,
    "call_out": _call_out,
    "interrupting_thread": _interrupting_thread,
    "second_answer": _second_answer,
    "segfault": _segfault,
    "exit": _exit_now,
}

OUTCOMES: dict[str, str] = {
    **dict.fromkeys(WORDS, "OUTPUT_CONTRACT_BROKEN"),
    **dict.fromkeys(("good", "kill_everybody", "read_secrets", "write_outside", "call_out"), "ok"),
    **dict.fromkeys(
        (
            "gigabyte", "claim_a_gigabyte", "large", "hoard", "hoard_shared", "hoard_in_children", "fork_bomb",
            "thread_bomb", "daemon", "spin", "big_file", "print_forever",
        ),
        "AGENT_OVER_LIMIT",
    ),
    **dict.fromkeys(("sleep", "deaf"), "AGENT_TIMEOUT"),
    **dict.fromkeys(("close_everything", "segfault", "exit"), "AGENT_CRASHED"),
}  # fmt: skip
