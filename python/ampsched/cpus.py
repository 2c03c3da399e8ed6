"""The CPUs that this process may use."""

import os


def allowed_cpus() -> set[int]:
    """Numbers of the CPUs that the calling thread may run on.

    Raises:
        OSError: The kernel does not say, as in some sandboxes.
    """
    try:
        return os.sched_getaffinity(0)
    except OverflowError:
        # Python takes each EINVAL for a set that is too small, until no larger one can be had.
        raise OSError("the kernel does not say which CPUs may be used") from None
