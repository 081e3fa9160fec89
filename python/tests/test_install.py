"""What is told to who has the sources, but not the package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import fencelock

SOURCES = Path(__file__).resolve().parent.parent


def test_the_folder_of_the_sources_says_what_to_do(tmp_path):
    package = tmp_path / "fencelock"
    without = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(fencelock.__file__).parent, package, ignore=without)

    def imported():
        return subprocess.run(
            [sys.executable, "-c", "import fencelock"],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            capture_output=True,
            text=True,
            check=False,
        )

    ran = imported()
    assert ran.returncode == 1
    assert "make python-dev" in ran.stderr
    assert str(package) in ran.stderr
    # A native half that is there and cannot be loaded is another matter.
    (package / "_native.abi3.so").write_bytes(b"no library")
    ran = imported()
    assert ran.returncode == 1
    assert "make python-dev" not in ran.stderr
    assert "_native" in ran.stderr


BUILD = """
import sys, types
# What the build environment has.
maturin = types.ModuleType("maturin")
for name in (
    "build_editable", "build_sdist", "build_wheel", "get_requires_for_build_sdist",
    "get_requires_for_build_wheel", "get_requires_for_build_editable",
    "prepare_metadata_for_build_editable", "prepare_metadata_for_build_wheel",
):
    setattr(maturin, name, lambda *_, name=name: [name])
sys.modules["maturin"] = maturin
import fencelock_backend
print(fencelock_backend.get_requires_for_build_wheel())
print(fencelock_backend.get_requires_for_build_editable({}))
"""


def test_a_build_without_cargo_is_refused_before_it_begins(tmp_path):
    def build(path):
        return subprocess.run(
            [sys.executable, "-c", BUILD],
            env={"PATH": path, "PYTHONPATH": str(SOURCES / "backend")},
            capture_output=True,
            text=True,
            check=False,
        )

    ran = build(str(tmp_path))
    assert ran.returncode == 1
    assert "'cargo' is not on the PATH" in ran.stderr
    assert ran.stdout == ""
    (tmp_path / "cargo").write_text("#!/bin/sh\n")
    (tmp_path / "cargo").chmod(0o755)
    ran = build(str(tmp_path))
    assert ran.stdout.split() == [
        "['get_requires_for_build_wheel']",
        "['get_requires_for_build_editable']",
    ], ran.stderr
