"""maturin, for those who have Rust: without a cargo it would download one unasked, in silence."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import maturin
from maturin import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Give what a build needs, if there is a cargo."""
    _look_for_cargo()
    return maturin.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Give what a build in place needs, if there is a cargo."""
    _look_for_cargo()
    return maturin.get_requires_for_build_editable(config_settings)


def _look_for_cargo() -> None:
    cargo = os.environ.get("CARGO", "cargo")
    if shutil.which(cargo) is None:
        sys.exit(
            f"fencelock: {cargo!r} is not on the PATH. Its native half is built with Rust: install "
            "Rust (https://rustup.rs), or add its bin folder, such as ~/.cargo/bin, to the PATH, "
            "and try again. It takes some minutes; `pip install --verbose` shows how far it is"
        )
