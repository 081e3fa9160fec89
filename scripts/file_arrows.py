"""Which file of a Rust crate names which other one, read from their text.

It knows `crate::`, `super::` and `self::` paths and what a module hands on with `pub use`; it knows no
macros and no types, so what passes a type on without naming its file is no arrow. Comments, strings
and tests are not read.
"""

import re
from pathlib import Path

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'r#".*?"#|"(?:\\.|[^"\\])*"', re.DOTALL)
USE = re.compile(r"\b(pub\s+)?use\s+([^;]+);")
VISIBLE = re.compile(r"\bpub\([^)]*\)")
CHILD = re.compile(r"\bmod\s+(\w+)\s*;")
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
TESTS = re.compile(r"#\[cfg\((?:all\()?(?:test|loom)[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")


def leaves(tree: str) -> list[str]:
    """The paths of a `use`, such as `a::{b, c::d as e}`, one by one."""
    tree = tree.strip()
    if "{" not in tree:
        return [tree.split(" as ")[0].strip()]
    head, _, rest = tree.partition("{")
    depth, part, found = 0, "", []
    for letter in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if part.strip():
                found += [(head + leaf).replace(" ", "") for leaf in leaves(part)]
            part = ""
        else:
            part += letter
    return found


def without_tests(text: str) -> str:
    """The text without its `mod tests { … }`."""
    while begin := TESTS.search(text):
        depth, at = 1, begin.end()
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        text = text[: begin.start()] + text[at:]
    return text


def name_of(file: str) -> tuple[str, ...]:
    """The module path of a file below src, such as ('blocking', 'driver')."""
    parts = Path(file).with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib", "main"} else parts


def arrows(files: dict[str, str]) -> set[tuple[str, str]]:
    """Pairs of files of which the first names the second. `files` has their texts, by path below src."""
    files = {file: text for file, text in files.items() if "tests" not in Path(file).with_suffix("").parts}
    modules = {name_of(file): file for file in files}
    clean = {
        file: VISIBLE.sub("pub", without_tests(STRING.sub('""', COMMENT.sub("", text))))
        for file, text in files.items()
    }

    def absolute(path: str, at: tuple[str, ...]) -> tuple[str, ...]:
        parts = path.split("::")
        if parts[0] in {"crate", "self"} or parts[0] == "super":
            while parts and parts[0] in {"crate", "super", "self"}:
                at = {"crate": (), "super": at[:-1], "self": at}[parts[0]]
                parts = parts[1:]
            return at + tuple(parts)
        return at + tuple(parts)

    # What a module hands on: by its path and the name, where that comes from.
    handed: dict[tuple[str, ...], tuple[str, ...]] = {}
    for name, file in modules.items():
        for public, tree in USE.findall(clean[file]):
            if public:
                for leaf in leaves(tree):
                    target = absolute(leaf, name)
                    handed[name + target[-1:]] = target

    def file_of(path: tuple[str, ...]) -> str | None:
        for _ in range(8):
            for length in range(len(path), 0, -1):
                if path[:length] in handed and handed[path[:length]] != path[:length]:
                    path = handed[path[:length]] + path[length:]
                    break
            else:
                break
        for length in range(len(path), -1, -1):
            if path[:length] in modules:
                return modules[path[:length]]
        return None

    found = set()
    for name, file in modules.items():
        text = clean[file]
        paths = [(leaf, name) for public, tree in USE.findall(text) if not public for leaf in leaves(tree)]
        paths = [(leaf, at) for leaf, at in paths if leaf.split("::")[0] in {"crate", "super", "self"}]
        body = USE.sub("", text)
        paths += [(path, name) for path in PATH.findall(body)]
        for child in CHILD.findall(text):
            if re.search(rf"(?<![\w:]){child}::", body):
                paths.append((f"self::{child}", name))
        for path, at in paths:
            target = file_of(absolute(path, at))
            if target is not None and target != file and name_of(target) != ():
                found.add((file, target))
    return found


def circles(found: set[tuple[str, str]]) -> list[list[str]]:
    """The groups of files each of which reaches every other one of its group."""
    ahead: dict[str, set[str]] = {}
    for source, target in found:
        ahead.setdefault(source, set()).add(target)
        ahead.setdefault(target, set())

    def reached(begin: str) -> set[str]:
        seen, left = set(), [begin]
        while left:
            for target in ahead[left.pop()] - seen:
                seen.add(target)
                left.append(target)
        return seen

    reach = {file: reached(file) for file in ahead}
    groups = {
        tuple(sorted(other for other in reach[file] if file in reach[other]))
        for file in ahead
        if file in reach[file]
    }
    return [list(group) for group in sorted(groups)]


def upward(found: set[tuple[str, str]], order: list[str]) -> list[str]:
    """What names a file that stands above it, or is not in the order, a sentence each."""
    floor = {file: at for at, file in enumerate(order)}
    files = {file for arrow in found for file in arrow}
    wrong = [f"{file} is not in the order" for file in sorted(files - floor.keys())]
    wrong += [
        f"{source} names {target}, which stands above it"
        for source, target in sorted(found)
        if source in floor and target in floor and floor[target] > floor[source]
    ]
    return wrong
