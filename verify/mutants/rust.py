"""Mutants of the engine, many in one build: each function that has some chooses by a number.

cargo-mutants names them; to build each by itself takes minutes. So the body of a function becomes
`match mutant() { 17 => mutated, 23 => mutated, _ => as it is }`, and the process is told its number.
"""

import json
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

NUMBER = '''
/// Which mutant this process is; 0 is none.
#[doc(hidden)]
pub(crate) fn mutant() -> u32 {
    static NUMBER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var("MUTANT").map_or(0, |text| text.parse().unwrap_or(0)))
}
'''
# What cannot matter: bugs planted on purpose, what only the simulator and the model checker ask for, what is
# printed for debugging.
LEFT_OUT = re.compile(
    r"/plant\.rs:|/fingerprint\.rs:|impl (?:\w+::)*Debug for|::planted_token\b|::joins_by_mistake\b"
    r"|::leftovers\b|::knows\b|Flights::len\b|::fingerprint\b"
)
PLANTED = re.compile(r"(!\s*)?\bplanted!\(\w+\)")
# What joins two planted bugs, neither of which is there.
JOINED = re.compile(PLANTED.pattern + r"\s*(&&|\|\|)\s*" + PLANTED.pattern)


@dataclass(frozen=True)
class Mutant:
    """One change of one function: the text from `begin` to `end` of its file becomes `new`."""

    name: str
    file: str
    begin: int
    end: int
    new: str
    body: tuple[int, int]


def chain_end(text: str, at: int) -> int:
    """Where the chain of `&&` ends that goes on at `at`."""
    if not re.compile(r"\s*&&").match(text, at):
        return at
    depth = 0
    for at in range(at, len(text)):
        ends = text[at] in "{;," or text.startswith(("||", "=>"), at)
        if depth == 0 and (ends or text[at] in ")]}"):
            break
        depth += (text[at] in "([{") - (text[at] in ")]}")
    return at


def chain_begin(text: str, at: int) -> int:
    """Where the chain of `&&` begins whose last part begins at `at`."""
    if not text[:at].rstrip().endswith("&&"):
        return at
    depth = 0
    for at in range(at - 1, -1, -1):
        begins = text[at] in "};," or re.match(r"\|\||=>|[^=]= |\bif\b", text[at - 1 : at + 2].strip())
        if depth == 0 and (begins or text[at] in "([{"):
            break
        depth += (text[at] in ")]}") - (text[at] in "([{")
    return at + 1


def block_end(text: str, at: int) -> int:
    """Where the block is closed that is opened at `at`."""
    depth = 0
    for at in range(at, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            break
    return at


def planted_spans(text: str) -> list[tuple[int, int]]:
    """What runs, or counts, only where a bug is planted, which none is here: the bug's own word, what
    stands beside it in a chain of `&&`, and the block that such a chain guards."""
    spans = [it.span() for it in JOINED.finditer(text)]
    for bug in PLANTED.finditer(text):
        if bug.group(1):
            spans.append(bug.span())
            continue
        begin, end = chain_begin(text, bug.start()), chain_end(text, bug.end())
        block = re.compile(r"\s*(?=\{)").match(text, end)
        if block and re.search(r"\bif\s*$", text[:begin]):
            end = block_end(text, block.end())
        spans.append((begin, end))
    return spans


def offset(lines: list[int], place: dict) -> int:
    return lines[place["line"] - 1] + place["column"] - 1


def body_of(text: str, begin: int, end: int) -> tuple[int, int] | None:
    """From behind the opening brace of the function's body to before its closing one."""
    head = re.compile(r"\bfn\s+\w+").search(text, begin, end)
    if not head or re.search(r"\bconst\s+(?:unsafe\s+)?$", text[begin : head.start()]):
        return None
    depth = 0
    for at in range(head.end(), end):
        if text[at] in "([":
            depth += 1
        elif text[at] in ")]":
            depth -= 1
        elif text[at] == "{" and depth == 0:
            return at + 1, text.rindex("}", at, end)
    return None


def listed(tree: Path) -> tuple[list[Mutant], dict[str, int]]:
    """The engine's mutants in a fixed order, and how many are not looked at, by why."""
    out = subprocess.run(
        ["cargo", "mutants", "--list", "--json", "--no-config", "--package", "fencelock-engine"],
        cwd=tree, check=True, capture_output=True, text=True,
    ).stdout
    found, without = [], defaultdict(int)
    texts: dict[str, str] = {}
    planted_in: dict[str, list[tuple[int, int]]] = {}
    for it in json.loads(out):
        text = texts.setdefault(it["file"], (tree / it["file"]).read_text())
        lines = [0] + [at.end() for at in re.finditer("\n", text)]
        begin, end = (offset(lines, it["span"][key]) for key in ("start", "end"))
        planted = planted_in.setdefault(it["file"], planted_spans(text))
        if LEFT_OUT.search(it["name"]) or any(a <= begin and end <= b for a, b in planted):
            without["cannot matter"] += 1
            continue
        where = it.get("function") and it["function"]["span"]
        body = where and body_of(text, offset(lines, where["start"]), offset(lines, where["end"]))
        if not body or begin < body[0] or end > body[1]:
            without["not in the body of a function that runs"] += 1
            continue
        found.append(Mutant(it["name"], it["file"], begin, end, it["replacement"], body))
    return found, dict(without)


def woven(text: str, numbered: list[tuple[int, Mutant]]) -> tuple[str, dict[int, tuple[int, int]]]:
    """A file's text with these mutants, and the lines that each has become."""
    bodies = defaultdict(list)
    for number, mutant in numbered:
        bodies[mutant.body].append((number, mutant))
    out, at, lines = "", 0, {}
    for (begin, end), group in sorted(bodies.items()):
        if begin < at:
            continue
        out += text[at:begin] + "\nmatch crate::mutant() {\n"
        for number, mutant in group:
            first = out.count("\n") + 1
            out += f"{number} => {{" + text[begin : mutant.begin] + mutant.new
            out += text[mutant.end : end] + "\n}\n"
            lines[number] = (first, out.count("\n"))
        out += "_ => {" + text[begin:end] + "\n}\n}\n"
        at = end
    return out + text[at:], lines


def weave(tree: Path, mutants: list[Mutant], check: list[str]) -> set[int]:
    """Puts the mutants, numbered from 1, into the tree; gives the numbers of those that are in it:
    the others do not compile."""
    texts = {file: (tree / file).read_text() for file in {mutant.file for mutant in mutants}}
    root = tree / "core/engine/src/lib.rs"
    root.write_text(root.read_text() + NUMBER)
    alive = dict(enumerate(mutants, 1))
    while True:
        where = {}
        for file, text in texts.items():
            new, lines = woven(text, [(n, it) for n, it in alive.items() if it.file == file])
            where[file] = lines
            (tree / file).write_text(new)
        alive = {number: it for number, it in alive.items() if number in where[it.file]}
        dead = failed(tree, where, check)
        if not dead:
            return set(alive)
        for number in dead:
            del alive[number]


def failed(tree: Path, where: dict[str, dict[int, tuple[int, int]]], check: list[str]) -> set[int]:
    """The mutants in whose lines the compiler finds an error."""
    run = subprocess.run(
        [*check, "--message-format=json"], cwd=tree, capture_output=True, text=True, check=False
    )
    dead, errors = set(), []
    for line in run.stdout.splitlines():
        message = json.loads(line).get("message")
        if not isinstance(message, dict) or message.get("level") != "error":
            continue
        errors.append(message["rendered"])
        for span in message["spans"]:
            # What a macro makes is told at the macro; where it was called is told beside.
            while span:
                for number, (first, last) in where.get(span["file_name"], {}).items():
                    if first <= span["line_start"] <= last:
                        dead.add(number)
                span = (span["expansion"] or {}).get("span")
    if run.returncode and not dead:
        raise SystemExit("mutants: the engine does not compile:\n" + "".join(errors) + run.stderr)
    return dead
