"""Mutants of Lua sources: one small change each, of a kind that a tired programmer makes."""

import re
from dataclasses import dataclass

# A string, a comment, a number, a word, an operator. Strings and comments are left alone.
TOKEN = re.compile(
    r"(?P<string>'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")|(?P<comment>--[^\n]*)"
    r"|(?P<number>\b\d+(?:\.\d+)?\b)|(?P<word>\b[A-Za-z_]\w*\b)|(?P<sign>[<>=~]=|\.\.|[<>+\-])"
)
SWAPS = {
    "<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"], "==": ["~="], "~=": ["=="],
    "and": ["or"], "or": ["and"], "true": ["false"], "false": ["true"], "+": ["-"], "-": ["+"],
    "min": ["max"], "max": ["min"],
}
# A line that is a statement by itself: a call, or an assignment that ends on it.
STATEMENT = re.compile(r"^ *(?:[a-z_]+\(.*\)|[a-z_][\w.\[\], ]* = [^{]*[^{,(])$")
OPEN = re.compile(r"\b(?:and|or|not)$|\.\.$|[-+=,(]$")


@dataclass(frozen=True)
class Mutant:
    """A change of one file: `old` at `begin` becomes `new`."""

    file: str
    line: int
    begin: int
    old: str
    new: str

    @property
    def name(self) -> str:
        what = f"replace {self.old} with {self.new}" if self.new else f"drop `{self.old.strip()}`"
        return f"{self.file}:{self.line}: {what}"

    def put(self, text: str) -> str:
        return text[: self.begin] + self.new + text[self.begin + len(self.old) :]


def mutants(file: str, text: str) -> list[Mutant]:
    """All mutants of a file, in its order."""
    found = []

    def add(begin: int, old: str, new: str) -> None:
        found.append(Mutant(file, text.count("\n", 0, begin) + 1, begin, old, new))

    for token in TOKEN.finditer(text):
        word = token.group()
        if token.lastgroup == "number" and "." not in word:
            add(token.start(), word, str(int(word) + 1))
            # A text from its place 0 is the text from its place 1.
            if int(word) > 0 and not text.startswith("1, 16)", token.start()):
                add(token.start(), word, str(int(word) - 1))
        elif text.startswith("+ 0", token.start()):
            # It makes a number of a text, as taking nothing from it does.
            continue
        elif token.lastgroup in ("word", "sign"):
            for new in SWAPS.get(word, []):
                add(token.start(), word, new)
    begin = 0
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        bare = line.rstrip("\n")
        after = lines[at + 1].lstrip() if at + 1 < len(lines) else ""
        whole = bare.count("(") == bare.count(")") and bare.count("{") == bare.count("}")
        goes_on = OPEN.search(bare) or after.startswith(("and ", "or ", "..", "+"))
        if whole and STATEMENT.match(bare) and not goes_on:
            add(begin, bare, "")
        begin += len(line)
    return found
