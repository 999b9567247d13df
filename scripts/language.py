#!/usr/bin/env python3
"""Counts phrases that Knee's texts avoid, and fails where a count exceeds scripts/language-counts.tsv.

    scripts/language.py            compares the counts with the table, and prints the hits of a count that rose
    scripts/language.py --record   lowers the table to the present counts
    scripts/language.py --list GROUP [AREA] [PATH]   prints the hits of one group

The areas are the pages (Markdown without code), the comments (Rust, C, Python, TypeScript) and the strings of the
programs (Rust, Python, TypeScript; help, messages). Counts are upper bounds: a few hits are good English.
docs/contributing/style.md is left out, because it quotes the phrases.
"""
import collections
import pathlib
import re
import signal
import subprocess
import sys

TABLE = pathlib.Path("scripts/language-counts.tsv")
LEFT_OUT = {"scripts/language.py", "docs/contributing/style.md"}
TARGET = 0.5  # hits per 1000 words of a page

PHRASES = {
    "in place of": r"\bin place of\b",
    "asked": r"\b(?:is|are|was|were|be|as|been) asked\b|\basked (?:for|of)\b",
    "told from": r"\btold(?: \w+){0,4} from\b|\btells?(?: \w+){1,6} from\b|\bto tell(?: \w+){1,6} from\b",
    "beside": r"\bbeside\b",
    "bear": r"\b(?:bears?|borne|bearing)\b",
    "on record": r"\bon record\b",
    "held against": r"\bheld against\b",
    "goes on": r"\b(?:goes|go|went|gone) on\b(?! to\b)",
    "anew": r"\banew\b",
    "sees to it": r"\b(?:sees?|saw) to (?:it|that|them)\b",
    "at hand": r"\bat hand\b",
    "stands": r"\b(?:stands|stood)\b(?! for\b)",
    "brings": r"\b(?:brings?|brought)\b",
    "some 16 000": r"\bsome \d",
    "least RTT": r"\bleast RTT",
    "Linux' own": r"\bLinux' ",
    "opening Of": r"(?:^|(?<=[.!?:;] ))Of (?!course)",
    "headless what": r"(?:^|(?<=[.!?:;] ))What\b[^?.]*(?=\.(?: |$))"
    r"|\b(?:of|to|by|with|from|for|in|on|at|than|is|are|as|after|and|or|but|only|exactly|about|into|beyond) what\b",
}
PHRASES = {group: re.compile(pattern, re.I if group not in ("opening Of",) else 0) for group, pattern in PHRASES.items()}
HEADING = re.compile(r"^#+ What\b[^?]*$", re.M)
FRAGMENT = re.compile(r"(?:When|Where|What|Which|Whether|How|Of|That|If|As)\b(?!ever)")

STRING = r'"(?:\\.|[^"\\])*"'
# The tokens that matter of each language; a named group is a comment or a string.
RUST = re.compile(
    rf'(?P<doc>(?:^[ \t]*//[/!][^\n]*\n?)+)|(?P<comment>(?:[ \t]*//[^\n]*(?:\n|$))+)|r(#*)"(?P<raw>.*?)"\3'
    rf"|(?P<string>{STRING})|'(?:\\.|[^'\\\n])'", re.S | re.M)
C = re.compile(rf"(?P<doc>/\*.*?\*/)|(?P<comment>(?:[ \t]*//[^\n]*(?:\n|$))+)|{STRING}|'(?:\\.|[^'\\\n])+'", re.S)
TYPESCRIPT = re.compile(
    rf"(?P<doc>/\*.*?\*/)|(?P<comment>(?:[ \t]*(?<![:\\])//[^\n]*(?:\n|$))+)|(?P<string>{STRING})"
    r"|(?P<string2>'(?:\\.|[^'\\\n])*')|(?P<raw>`(?:\\.|[^`\\])*`)", re.S)
PYTHON = re.compile(
    rf'^[ \t]*r?(?P<doc>""".*?""")|(?P<raw>""".*?""")|(?P<string>{STRING})'
    r"|(?P<comment>(?:[ \t]*#[^\n]*(?:\n|$))+)", re.S | re.M)
LANGUAGES = {".rs": RUST, ".c": C, ".h": C, ".py": PYTHON, ".pyi": PYTHON, ".ts": TYPESCRIPT}


def page(text):
    """The prose of a Markdown page: without code, link targets and generated blocks' markers."""
    text = re.sub(r"^( *)(```+|~~~+).*?^\1\2", "", text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"`[^`\n]*`", "`x`", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def pieces(path, text):
    """Area, line, whether it is a documentation comment, and the text of each piece of prose."""
    if path.endswith(".md"):
        for part in re.split(r"\n\s*\n|\n(?=[ \t]*(?:[-*|#]|\d+\.) )", page(text)):
            yield "pages", 0, False, part.strip(" \t\n-*|")
        return
    for token in LANGUAGES[pathlib.Path(path).suffix].finditer(text):
        kind = token.lastgroup
        if kind is None or (kind in ("raw", "string", "string2") and "/tests/" in path):
            continue
        words = re.sub(r'^[ \t]*(?://[/!]?|/\*+|\*+/?|#+(?!\[)|""")|\*/|"""', "", token[kind], flags=re.M)
        line = text.count("\n", 0, token.start(kind)) + 1
        if kind in ("doc", "comment"):
            yield "comments", line, kind == "doc", words
        elif " " in words:
            yield "strings", line, False, words.replace("\\n", " ").replace("\\\n", " ").strip("\"'`")


def hits(paths):
    """Every hit: group, area, place, excerpt; and the number of words of the pages."""
    found, words = [], 0
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        if path.endswith(".md"):
            words += len(page(text).split())
            found += [("heading What", "pages", path, m[0]) for m in HEADING.finditer(page(text))]
        for area, line, doc, piece in pieces(path, text):
            flat = " ".join(piece.split())
            where = f"{path}:{line}" if line else path
            if doc and FRAGMENT.match(flat):
                found.append(("fragment", area, where, flat[:90]))
            for group, pattern in PHRASES.items():
                for m in pattern.finditer(flat):
                    found.append((group, area, where, flat[max(0, m.start() - 40) : m.end() + 40]))
    return found, words


def main(arguments):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True)
    suffixes = (*LANGUAGES, ".md")
    paths = [p for p in listed.stdout.splitlines()
             if p.endswith(suffixes) and p not in LEFT_OUT and pathlib.Path(p).is_file()]
    found, words = hits(paths)
    if arguments[:1] == ["--list"]:
        wanted = arguments[1:]
        for hit in found:
            if hit[0] == wanted[0] and hit[1].startswith("".join(wanted[1:2])) and "".join(wanted[2:3]) in hit[2]:
                print(f"{hit[2]}: {hit[3]}")
        return 0
    counts = collections.Counter((group, area) for group, area, _, _ in found)
    groups = [*PHRASES, "heading What", "fragment"]
    keys = [(g, a) for g in groups for a in ("pages", "comments", "strings")]
    table = {}
    if TABLE.is_file():
        rows = (line.split("\t") for line in TABLE.read_text().splitlines()[1:])
        table = {(g, a): int(n) for g, a, n in rows}
    rose = [key for key in keys if counts[key] > table.get(key, 0 if table else counts[key])]
    if arguments == ["--record"]:
        lowest = {key: min(counts[key], table.get(key, 0 if table else counts[key])) for key in keys}
        lines = [f"{g}\t{a}\t{n}" for (g, a), n in lowest.items() if n]
        TABLE.write_text("\n".join(["phrase\tarea\tcount", *lines]) + "\n")
    for group, area in rose:
        print(f"{group!r} in {area}: {counts[group, area]}, at most {table.get((group, area), 0)} in {TABLE}", file=sys.stderr)
        for hit in found:
            if hit[:2] == (group, area):
                print(f"    {hit[2]}: {hit[3]}", file=sys.stderr)
    total = collections.Counter(area for _, area, _, _ in found)
    rate = 1000 * total["pages"] / max(words, 1)
    print(f"language: {total['pages']} hits in pages ({rate:.2f} per 1000 words, target below {TARGET}), "
          f"{total['comments']} in comments, {total['strings']} in strings")
    return 1 if rose else 0


signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # for `--list … | head`
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
