"""Memory that loading took and that nobody needs any more goes back to the machine."""

import ctypes


def give_back() -> None:
    """Have the C library return what is free; reading a model leaves holes as large as the model behind.

    Only the GNU C library keeps so much, and only it has a function for this.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
