#!/usr/bin/env python3
"""Checks that no file of a crate imports another that imports it back, directly or over others.

A file counts without its tests. A name that a file only passes on (`pub use`) belongs to the file
that defines it.

    scripts/check-cycles.py [FOLDER]    a checkout; without it, this one
"""

import doctest
import graphlib
import pathlib
import re
import runpy
import sys

HERE = pathlib.Path(__file__).parent
LINES = runpy.run_path(str(HERE / "count-lines.py"))
USE = re.compile(r"^[ \t]*(?P<public>pub(\([^)]*\))? )?use (?P<tree>[^;]+);", re.M)
PATH = re.compile(r"(?<![\w:])(?<!in )\w+(?:::\w+)+")


def code(text):
    """The text without comments, literals and tests.

    >>> code("use a; // b\\n#[cfg(test)]\\nmod tests { use c; }")
    'use a;     \\n'
    """
    text = LINES["TOKEN"].sub(LINES["blanked"], text)
    while found := LINES["CFG_TEST"].search(text):
        text = text[: found.start()] + text[LINES["item_end"](text, found.end()) :]
    return text


def leaves(tree):
    """The paths that a `use` names, with the names that the file gives their ends.

    >>> leaves("crate::{a::{self, B as C}, d}")
    {'a': ['crate', 'a'], 'C': ['crate', 'a', 'B'], 'd': ['crate', 'd']}
    """
    found = {}
    head, brace, rest = tree.partition("{")
    steps = [step.strip() for step in head.split("::") if step.strip()]
    if not brace:
        last, _, alias = steps[-1].partition(" as ")
        steps = steps[:-1] if last == "self" else [*steps[:-1], last]
        return {alias or steps[-1]: steps}
    depth, item = 0, ""
    for letter in rest[: rest.rindex("}")] + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter != "," or depth:
            item += letter
            continue
        if item.strip():
            found |= leaves("::".join([*steps, item.strip()]))
        item = ""
    return found


def module(path):
    """The path of a file's module within its crate.

    >>> module(pathlib.Path("a/mod.rs"))
    ('a',)
    """
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts


class Crate:
    """The files of a crate, by the paths of their modules."""

    def __init__(self, modules):
        self.code = {name: code(text) for name, text in modules.items()}
        self.imports, self.passed_on = {}, {}
        for name, text in self.code.items():
            uses = [(use["public"], leaves(use["tree"])) for use in USE.finditer(text)]
            self.imports[name] = [
                path for public, found in uses if not public for path in found.values()
            ]
            self.passed_on[name] = {leaf: path for _, found in uses for leaf, path in found.items()}

    def owner(self, name, path, seen=()):
        """The module that defines what module `name` calls `path`; None outside the crate."""
        place, rest = list(name), list(path)
        if rest[0] == "crate":
            place, rest = [], rest[1:]
        elif rest[0] not in ("self", "super") and (*name, rest[0]) not in self.code:
            return None
        while rest and rest[0] in ("self", "super"):
            place = place[:-1] if rest.pop(0) == "super" else place
        while rest and (*place, rest[0]) in self.code:
            place.append(rest.pop(0))
        place = tuple(place)
        passed_on = self.passed_on.get(place, {}).get(rest[0]) if rest else None
        if passed_on and (place, rest[0]) not in seen:
            return self.owner(place, passed_on, (*seen, (place, rest[0])))
        return place if place in self.code else None

    def needs(self, name):
        """The modules that module `name` imports from.

        >>> crate = Crate({(): "pub use a::A;", ("a",): "", ("b",): "use crate::A;"})
        >>> crate.needs(("b",)), crate.needs(())
        ({('a',)}, set())
        """
        inline = [path.split("::") for path in PATH.findall(USE.sub("", self.code[name]))]
        owners = {self.owner(name, path) for path in self.imports[name] + inline}
        return owners - {None, name}

    def cycle(self):
        """Modules of which each imports from the next, and the last is the first; or none.

        >>> Crate({("a",): "use crate::b::B;", ("b",): "fn f() { crate::a::g() }"}).cycle()
        [('a',), ('b',), ('a',)]
        >>> Crate({("a",): "use crate::b::B;", ("b",): ""}).cycle()
        []
        """
        try:
            graphlib.TopologicalSorter({name: self.needs(name) for name in self.code}).prepare()
        except graphlib.CycleError as error:
            return error.args[1][::-1]
        return []


def main(folder):
    doctest.testmod(raise_on_error=True)
    cycles = 0
    for source in sorted(pathlib.Path(folder).glob("crates/*/src")):
        files = {file.relative_to(source): file for file in source.rglob("*.rs")}
        modules = {
            module(path): file.read_text(encoding="utf-8")
            for path, file in files.items()
            if "tests" not in path.with_suffix("").parts
        }
        cycle = Crate(modules).cycle()
        if cycle:
            cycles += 1
            names = ["/".join(name) or "lib" for name in cycle]
            print(f"{source.parent.name}: {' imports from '.join(names)}", file=sys.stderr)
    sys.exit(bool(cycles))


if __name__ == "__main__":
    main(*sys.argv[1:] or [str(HERE.parent)])
