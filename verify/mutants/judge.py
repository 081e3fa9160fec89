#!/usr/bin/env python3
"""Mutation testing of the engine and of its Lua scripts: `scripts/mutants` says how it is asked for."""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import lua
import rust

ROOT = Path(os.path.realpath(__file__)).parent.parent.parent
SCRIPTS = "core/engine/src/redis"
EXPLAINED = ROOT / "verify/mutants/explained.txt"
# What each must take at the most; a mutant that takes longer hangs, which is seen, too.
PATIENCE = 120
# Threads of judges; they are children that compute.
JOBS = os.cpu_count() or 1


@dataclass(frozen=True)
class Judge:
    """A command that must succeed, and fails where it sees the mutant."""

    name: str
    command: tuple[str, ...]
    folder: Path
    variables: tuple[tuple[str, str], ...] = ()

    def fails(self, mutant: dict[str, str]) -> str | None:
        """Why it fails, in a word; nothing when the mutant passes."""
        run = subprocess.Popen(
            ["nice", *self.command], cwd=self.folder, env={**os.environ, **dict(self.variables), **mutant},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        try:
            out, _ = run.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            return "hangs"
        if run.returncode == 0:
            return None
        return "does not compile" if "patched script compiles" in out else "seen"


def programs(command: list[str], tree: Path) -> list[tuple[str, str, str]]:
    """What a cargo command builds: target, program, folder of its crate."""
    run = subprocess.run(
        [*command, "--message-format=json"], cwd=tree, stdout=subprocess.PIPE, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"mutants: {' '.join(command)} failed; see above")
    built = []
    for line in run.stdout.splitlines():
        it = json.loads(line)
        if it["reason"] == "compiler-artifact" and it.get("executable"):
            built.append((it["target"]["name"], it["executable"], str(Path(it["manifest_path"]).parent)))
    return built


class Judges:
    """What is asked of each mutant, in order: the quick ones first."""

    def __init__(self, tree: Path, cargo: list[str]) -> None:
        tests = programs([*cargo, "test", "--quiet", "--no-run", "--package", "fencelock-engine"], tree)
        self.tests = [Judge(f"engine's tests ({name})", (path,), Path(at)) for name, path, at in tests]
        built = [*cargo, "test", "--quiet", "--no-run", "--package", "fencelock-sim", "--test", "differential"]
        [(_, path, at)] = [it for it in programs(built, tree) if it[0] == "differential"]
        # A mutant of the rules is looked at over fewer seeds: they are in the simulator, too.
        self.compared = Judge("differential test", (path, "modelled"), Path(at))
        build = [*cargo, "build", "--quiet", "--package", "fencelock-sim", "--bin", "fencelock-sim"]
        [(_, self.simulator, _)] = programs(build, tree)
        self.tree = tree

    def simulated(self, store: str, seconds: int) -> Judge:
        command = (self.simulator, "deep", "--seconds", str(seconds), "--store", store)
        return Judge(f"simulator ({store})", command, self.tree)

    def of_rust(self, file: str) -> list[Judge]:
        if "/zookeeper/" in file:
            return [*self.tests, self.simulated("zookeeper", 15)]
        if "/redis/" in file:
            return [*self.tests, self.compared, self.simulated("redis", 10)]
        both = [self.simulated("record", 15), self.simulated("zookeeper", 10)]
        return [*self.tests, *both, self.compared] if "/store/" in file else [*self.tests, *both]

    def of_lua(self) -> list[Judge]:
        return [self.compared, self.simulated("redis", 15)]


def verdict(mutant: dict[str, str], judges: list[Judge]) -> str | None:
    """Who sees the mutant and how; nothing when it survives."""
    for judge in judges:
        how = judge.fails(mutant)
        if how:
            return how if how == "does not compile" else f"{how}: {judge.name}"
    return None


def explained() -> dict[str, str]:
    """Survivors that change nothing that anybody could see, and why: `name  # reason`, without the
    line's number, which moves."""
    if not EXPLAINED.exists():
        return {}
    lines = EXPLAINED.read_text().splitlines()
    pairs = (line.split("  # ", 1) for line in lines if "  # " in line and not line.startswith("#"))
    return {name.strip(): why.strip() for name, why in pairs}


def plain(name: str) -> str:
    return re.sub(r":\d+(?::\d+)?:", ":", name, count=1)


def judge(kind: str, asked: list[tuple[str, dict[str, str], list[Judge]]], stop: float) -> tuple[int, int]:
    """Judges one after the other until the time is over; prints each, and the score."""

    def one(it: tuple[str, dict[str, str], list[Judge]]) -> tuple[str, str | None] | None:
        if time.monotonic() > stop:
            return None
        name, mutant, judges = it
        how = verdict(mutant, judges)
        print(f"{how or 'SURVIVES'}: {name}", flush=True)
        return name, how

    with ThreadPoolExecutor(JOBS) as pool:
        done = [it for it in pool.map(one, asked) if it]
    done = [it for it in done if it[1] != "does not compile"]
    known = explained()
    survivors = [name for name, how in done if how is None]
    unknown = [name for name in survivors if plain(name) not in known]
    seen, excused = len(done) - len(survivors), len(survivors) - len(unknown)
    share = 100 * seen / max(len(done) - excused, 1)
    print(f"\n{kind}: {len(done)} mutants judged: {seen} seen, {len(survivors)} survive, {excused} of them")
    print(f"explained as no change; score {share:.1f} % of the others")
    for name in survivors:
        print(f"  survives: {name}  # {known.get(plain(name), '?')}")
    return seen, len(done) - excused


def drawn_lua(tree: Path, seed: int) -> list[tuple[str, dict[str, str]]]:
    """All mutants of the scripts, in an order drawn by the seed, each as a file of its own."""
    drawn = []
    for path in sorted((tree / SCRIPTS).glob("*.lua")):
        text = path.read_text()
        drawn += [(path, it, it.put(text)) for it in lua.mutants(path.name, text)]
    random.Random(seed).shuffle(drawn)
    folder = tree.parent / "lua"
    folder.mkdir(exist_ok=True)
    mutants = []
    for number, (path, it, text) in enumerate(drawn):
        put = folder / f"{number}.lua"
        put.write_text(text)
        mutants.append((it.name, {"LUA_MUTANT": f"{path}:{put}"}))
    return mutants


def main() -> int:
    parse = argparse.ArgumentParser(description=__doc__)
    parse.add_argument("kind", choices=["rust", "lua", "all"], nargs="?", default="all")
    parse.add_argument("--seed", type=int, default=1, help="which mutants are drawn")
    parse.add_argument("--seconds", type=int, default=600, help="how long to judge; building not counted")
    parse.add_argument("--most", type=int, default=400, help="how many Rust mutants are built in")
    parse.add_argument("--least", type=float, default=0, help="fail below this score, in per cent")
    parse.add_argument("--tree", type=Path, required=True, help="a copy of the sources, to be changed")
    args = parse.parse_args()
    cargo = ["nice", "cargo"]
    asked = []
    # One build serves both: without a number the engine is as it was.
    if args.kind != "lua":
        found, without = rust.listed(args.tree)
        print(f"Rust: {len(found)} mutants, drawn with seed {args.seed}; left out: {without}", flush=True)
        random.Random(args.seed).shuffle(found)
        found = found[: args.most]
        alive = rust.weave(args.tree, found, [*cargo, "check", "--quiet", "--package", "fencelock-engine"])
        print(f"Rust: {len(alive)} of the first {len(found)} compile", flush=True)
    judges = Judges(args.tree, cargo)
    # Without a mutant all must be content, or their word means nothing.
    broken = verdict({}, [*judges.tests, *judges.of_lua(), *judges.of_rust("/store/")])
    if broken:
        raise SystemExit(f"mutants: without a mutant: {broken}")
    if args.kind != "rust":
        drawn = drawn_lua(args.tree, args.seed)
        print(f"Lua: {len(drawn)} mutants, drawn with seed {args.seed}", flush=True)
        asked.append(("Lua", [(name, mutant, judges.of_lua()) for name, mutant in drawn]))
    if args.kind != "lua":
        numbered = [(number, it) for number, it in enumerate(found, 1) if number in alive]
        named = [(it.name, {"MUTANT": str(number)}, judges.of_rust(it.file)) for number, it in numbered]
        asked.append(("Rust", named))
    each = args.seconds / len(asked)
    scores = [judge(kind, them, time.monotonic() + each) for kind, them in asked]
    seen, of = (sum(part) for part in zip(*scores))
    print(f"mutants: {seen} of {of} seen, {100 * seen / max(of, 1):.1f} %")
    return 0 if 100 * seen >= args.least * of else 1


if __name__ == "__main__":
    sys.exit(main())
