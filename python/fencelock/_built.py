"""Whether the native half is here: in the folder of the sources it is not, until it is built."""

from __future__ import annotations

import importlib.machinery
from pathlib import Path

_HERE = Path(__file__).resolve().parent

MISSING = (
    f"the native half of fencelock is not in {_HERE}: this is the folder of its sources, which "
    "Python looks into because you are beside it (or PYTHONPATH names it). Leave the folder to "
    "import the installed package, or build here: `make python-dev` in the repository makes a "
    "virtual environment with it, `scripts/python build` puts the native half beside the sources"
)


def native() -> bool:
    """Whether there is a native half for this Python, whatever else is wrong with it."""
    suffixes = importlib.machinery.EXTENSION_SUFFIXES
    return any((_HERE / f"_native{suffix}").exists() for suffix in suffixes)
