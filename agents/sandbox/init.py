"""The first process of a pid namespace, for a program that is not written to be one.

The kernel keeps most signals from a first process and hands it every orphan to wait for. Most programs expect
neither, so this one does it for them; it is as confined as they are.
"""

import os

from agents.sandbox import kernel
from agents.sandbox.held import SIGNALLED


def run_below(program: int) -> None:
    """Wait for orphans until the program itself ends, then end as it did; never returns.

    Args:
        program: Its process.
    """
    # The program is the same user, and has no business in here.
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    # What the program speaks on closes when the program closes it.
    for fd in range(3):
        os.dup2(nothing, fd)
    os.closerange(3, 256)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            code = SIGNALLED + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            os._exit(code)
