"""What a test's process holds, without what it has freed and not given back to the system."""

from __future__ import annotations

import ctypes
import gc


def trim() -> None:
    """Give back what is free, so that whatever is taken from here on is seen in what the process holds.

    A process that ran other tests before may have hundreds of megabytes free, from which more is taken unseen.
    """
    gc.collect()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; other systems' allocators give back at once
    if give_back is not None:
        give_back(0)
