"""Training of models that predict speed-ups from performance counters.

    counter table or simulated counters -> TrainingSet -> selection (PCA) -> regression -> validation -> model file

Needs scikit-learn: ``pip install 'ampsched[train]'``.
"""

import warnings

from ampsched._core import InputError


def require_sklearn() -> None:
    """Refuses to go on without scikit-learn.

    Raises:
        InputError: If it is not installed; the text says how to install it.
    """
    try:
        with warnings.catch_warnings():
            # Without semaphores, as where /dev/shm cannot be written, its library for parallel work warns. None is done
            # here.
            warnings.filterwarnings("ignore", ".*joblib will operate in serial mode", UserWarning)
            import sklearn  # noqa: F401
    except ImportError:
        hint = "install it with: pip install 'ampsched[train]'"
        raise InputError(f"training needs scikit-learn, which is not installed ({hint})") from None
