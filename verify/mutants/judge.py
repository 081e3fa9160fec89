#!/usr/bin/env python3
"""Mutation testing of the engine and of its Lua scripts: `scripts/mutants` says how it is asked for."""

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import lua
import rust

ROOT = Path(os.path.realpath(__file__)).parent.parent.parent
SCRIPTS = "core/engine/src/redis"
EXPLAINED = ROOT / "verify/mutants/explained.txt"
# How many times what it takes without a mutant a judge may take, and at the least so many seconds; a
# mutant that takes longer hangs, which is seen, too.
PATIENCE, SHORTEST = 8, 20.0
# Bytes of memory and seconds of a processor that a judge may take: a mutant that wants ever more must
# not take the machine with it, also when whoever judges it was stopped.
MEMORY, PROCESSOR = 4 << 30, 600
# Seeds that the simulator plays of a mutant that no test sees, by store.
DOSE = {"record": 600, "redis": 100, "zookeeper": 80}
# Optimised a little and incremental, with the checks of a debug build.
PROFILE = ["--profile", "mutants"]


def bounded() -> None:
    """Bounds the process that is about to run."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR, PROCESSOR))


@dataclass(frozen=True)
class Judge:
    """A command that must succeed, and fails where it sees the mutant."""

    name: str
    command: tuple[str, ...]
    folder: Path
    patience: float = 300.0

    def fails(self, mutant: dict[str, str]) -> str | None:
        """Why it fails, in a word; nothing when the mutant passes."""
        run = subprocess.Popen(
            ["nice", *self.command], cwd=self.folder, env={**os.environ, **mutant},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            preexec_fn=bounded,
        )
        try:
            out, _ = run.communicate(timeout=self.patience)
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

    def __init__(self, tree: Path, cargo: list[str], quick: bool) -> None:
        self.tree, self.quick = tree, quick
        package = ["--quiet", *PROFILE, "--package"]
        tests = programs([*cargo, "test", "--no-run", *package, "fencelock-engine"], tree)
        self.tests = [Judge(f"engine's tests ({name})", (path,), Path(at)) for name, path, at in tests]
        built = [*cargo, "test", "--no-run", *package, "fencelock-sim", "--test", "differential"]
        [(_, path, at)] = [it for it in programs(built, tree) if it[0] == "differential"]
        self.compared = Judge("differential test", (path, "modelled"), Path(at))
        build = [*cargo, "build", *package, "fencelock-sim", "--bin", "fencelock-sim"]
        [(_, self.simulator, _)] = programs(build, tree)
        self.tests = [self.measured(it) for it in self.tests]
        self.compared = self.measured(self.compared)
        self.doses = {} if quick else {it: self.measured(self.dose(it)) for it in DOSE}

    def measured(self, judge: Judge) -> Judge:
        """A judge that knows how long it takes. Without a mutant it must be content, or its word
        means nothing."""
        begun = time.monotonic()
        if judge.fails({}):
            raise SystemExit(f"mutants: {judge.name} fails without a mutant: {' '.join(judge.command)}")
        return replace(judge, patience=max(SHORTEST, PATIENCE * (time.monotonic() - begun)))

    def simulated(self, *stores: str) -> list[Judge]:
        return [] if self.quick else [self.doses[it] for it in stores]

    def dose(self, store: str) -> Judge:
        deep = (self.simulator, "deep", "--seeds", str(DOSE[store]), "--store", store)
        return Judge(f"simulator ({store})", deep, self.tree)

    def of_rust(self, file: str) -> list[Judge]:
        if "/zookeeper/" in file:
            return [*self.tests, *self.simulated("zookeeper")]
        if "/redis/" in file:
            return [*self.tests, self.compared, *self.simulated("redis")]
        if "/store/" in file:
            return [*self.tests, self.compared, *self.simulated("record")]
        return [*self.tests, *self.simulated("record", "zookeeper")]

    def of_lua(self) -> list[Judge]:
        return [self.compared, *self.simulated("redis")]


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


def between(seen: int, of: int) -> tuple[float, float]:
    """Wilson's interval: between which shares, in per cent, that of all mutants lies 19 times in 20."""
    if not of:
        return 0.0, 100.0
    z, share = 1.96, seen / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    reach = z / (1 + z * z / of) * (share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5
    return 100 * (middle - reach), 100 * (middle + reach)


def judge(
    kind: str, asked: list[tuple[str, dict[str, str], list[Judge]]], stop: float, jobs: int
) -> tuple[int, int]:
    """Judges one after the other until the time is over; prints each, and the score."""

    def one(it: tuple[str, dict[str, str], list[Judge]]) -> tuple[str, str | None] | None:
        if time.monotonic() > stop:
            return None
        name, mutant, judges = it
        how = verdict(mutant, judges)
        print(f"{how or 'SURVIVES'}: {name}", flush=True)
        return name, how

    with ThreadPoolExecutor(jobs) as pool:
        done = [it for it in pool.map(one, asked) if it]
    done = [it for it in done if it[1] != "does not compile"]
    known = explained()
    survivors = [name for name, how in done if how is None]
    unknown = [name for name in survivors if plain(name) not in known]
    seen, excused = len(done) - len(survivors), len(survivors) - len(unknown)
    of = len(done) - excused
    low, high = between(seen, of)
    print(f"\n{kind}: {len(done)} mutants judged: {seen} seen, {len(survivors)} survive, {excused} of them")
    print(f"explained as no change; score {100 * seen / max(of, 1):.1f} % of the others;", end=" ")
    print(f"all of them, 19 times in 20: {low:.0f} to {high:.0f} %")
    for name in survivors:
        print(f"  survives: {name}  # {known.get(plain(name), '?')}")
    return seen, of


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
    parse.add_argument("--only", type=re.compile, default="", help="only mutants whose name matches")
    parse.add_argument("--quick", action="store_true", help="ask the tests, not the simulator")
    parse.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="judges at a time")
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
        found = [it for it in found if re.search(args.only, it.name)][: args.most]
        alive = rust.weave(args.tree, found, [*cargo, "check", "--quiet", "--package", "fencelock-engine"])
        print(f"Rust: {len(alive)} of the first {len(found)} compile", flush=True)
    judges = Judges(args.tree, cargo, args.quick)
    if args.kind != "rust":
        drawn = [it for it in drawn_lua(args.tree, args.seed) if re.search(args.only, it[0])]
        print(f"Lua: {len(drawn)} mutants, drawn with seed {args.seed}", flush=True)
        asked.append(("Lua", [(name, mutant, judges.of_lua()) for name, mutant in drawn]))
    if args.kind != "lua":
        numbered = [(number, it) for number, it in enumerate(found, 1) if number in alive]
        named = [(it.name, {"MUTANT": str(number)}, judges.of_rust(it.file)) for number, it in numbered]
        asked.append(("Rust", named))
    each = args.seconds / len(asked)
    scores = [judge(kind, them, time.monotonic() + each, args.jobs) for kind, them in asked]
    seen, of = (sum(part) for part in zip(*scores))
    print(f"mutants: {seen} of {of} seen, {100 * seen / max(of, 1):.1f} %")
    return 0 if 100 * seen >= args.least * of else 1


if __name__ == "__main__":
    sys.exit(main())
