#!/usr/bin/env python3
"""Counts the lines of Rust code of each crate: without tests, comments and blank lines.

Tests are the folders tests/ and benches/, files named tests.rs, and items under `#[cfg(test)]`. A documentation comment
is a comment. A line with code and a comment is code. Crates that only tests and measurements use have a total of their own.

    scripts/count-lines.py [FOLDER]    a checkout; without it, this one
"""
import collections
import pathlib
import re
import subprocess
import sys

DEVELOPMENT = {"bench", "knee-fixtures", "knee-fuzz"}
TEST_FILE = re.compile(r"(^|/)(tests|benches)/|(^|/)tests\.rs$")
CFG_TEST = re.compile(r"#\[cfg\(test\)\]")
# Comments, and the literals in which two slashes, a quote or a brace mean nothing.
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |b?c?r(?P<hashes>\#*)".*?"(?P=hashes)
    |[bc]?"(?:\\.|[^"\\])*"
    |b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'""", re.S | re.X)


def blanked(token):
    """A comment vanishes. A literal becomes x's, so that its braces are not counted. Both keep their line breaks."""
    return re.sub(r"[^\n]", " " if token["comment"] else "x", token[0])


def item_end(text, start):
    """The end of the item after `start`: its semicolon, or the brace that closes its first one."""
    depth = 0
    for m in re.compile(r"[;{}()\[\]]").finditer(text, start):
        depth += {"{": 1, "(": 1, "[": 1, ";": 0}.get(m[0], -1)
        if depth == 0 and m[0] in ";}":
            return m.end()
    return len(text)


def code_lines(source):
    """Number of lines of code."""
    text = TOKEN.sub(blanked, source)
    while m := CFG_TEST.search(text):
        text = text[: m.start()] + text[item_end(text, m.end()) :]
    return sum(1 for line in text.split("\n") if line.strip())


def crate(path):
    """Name of the crate that a file belongs to: its folder."""
    parts = pathlib.PurePath(path).parts
    return parts[1] if parts[0] == "crates" else parts[0]


def main(folder):
    git = ["git", "-C", folder, "ls-files", "-co", "--exclude-standard", "--", "*.rs"]
    listed = subprocess.run(git, capture_output=True, text=True, check=True)
    counts = collections.Counter()
    for path in set(listed.stdout.splitlines()):
        file = pathlib.Path(folder, path)
        if file.is_file() and not TEST_FILE.search(path):
            counts[crate(path)] += code_lines(file.read_text(encoding="utf-8"))
    parts = [("total", set(counts) - DEVELOPMENT), ("total, development only", set(counts) & DEVELOPMENT)]
    for title, crates in parts:
        for name in sorted(crates, key=lambda name: -counts[name]):
            print(f"{counts[name]:7} {name}")
        print(f"{sum(counts[name] for name in crates):7} {title}\n")


if __name__ == "__main__":
    main(*sys.argv[1:] or [str(pathlib.Path(__file__).parent.parent)])
