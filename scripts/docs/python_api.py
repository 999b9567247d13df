"""The reference of the Python package as Markdown, from its sources, without an import of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

# Modules in the order of the page, with their headings.
SECTIONS = (
    ("_runs", "Runs and results"),
    ("_scenario", "Scenarios"),
    ("_commands", "Commands"),
    ("_sweep", "Studies"),
    ("_tune", "Tuning"),
    ("_algorithm", "Algorithms in Python"),
    ("_errors", "Errors"),
    ("contract", "Module `knee.contract`"),
    ("gym", "Module `knee.gym`"),
    ("widget", "Module `knee.widget`"),
)
# Types that signatures name; the package does not export them.
ALIASES = ("Described", "Flows", "Study", "Value")
SPECIAL = ("__len__", "__arrow_c_stream__")

Definition = ast.ClassDef | ast.FunctionDef


def reference(package: Path) -> str:
    """The page's generated part. Public are the names in `__all__`, and those of public modules."""
    init = ast.parse((package / "__init__.py").read_text())
    public = _exported(init)
    parts: list[str] = []
    seen: set[str] = set()
    for module, heading in SECTIONS:
        tree = ast.parse((package / f"{module}.py").read_text())
        parts.append(f"## {heading}")
        if not module.startswith("_"):
            parts.append(_text(ast.get_docstring(tree) or ""))
        wanted = None if not module.startswith("_") else public
        prefix = f"knee.{module}." if wanted is None else "knee."
        for name, node in _definitions(tree, package, wanted):
            seen.add(name)
            parts += _definition(prefix, name, node)
    missing = public - seen - {"__version__", "contract"}
    if missing:
        raise SystemExit(f"python_api: no definition of {sorted(missing)}")
    return "\n\n".join(part for part in parts if part)


def _exported(init: ast.Module) -> set[str]:
    for node in init.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    raise SystemExit("python_api: knee has no __all__")


def _definitions(
    tree: ast.Module, package: Path, wanted: set[str] | None
) -> list[tuple[str, Definition | str]]:
    """Public definitions of a module in their order; of a constant, or an alias, its docstring."""
    native = {
        node.name: node
        for node in ast.parse((package / "_knee.pyi").read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    found: list[tuple[str, Definition | str]] = []
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            name: str = node.name
            of: Definition | str | None = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = ast.unparse(target)
            value = ast.unparse(node.value) if node.value else ""
            of = native[name] if value == f"_knee.{name}" else _docstring_after(after)
            if isinstance(of, str):
                of = f"`{value}`: {of}" if len(value) < 30 and not value.startswith("'") else of
        else:
            continue
        if of is None or name.startswith("_"):
            continue
        if wanted is None or name in wanted or name in ALIASES:
            found.append((name, of))
    return found


def _docstring_after(node: ast.stmt | None) -> str | None:
    """The string below an assignment."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        text = node.value.value
        return _clean(text) if isinstance(text, str) else None
    return None


def _definition(prefix: str, name: str, node: Definition | str) -> list[str]:
    if isinstance(node, str):
        heading = f"Type `{name}`" if name in ALIASES else f"`{prefix}{name}`"
        return [f"### {heading}", _text(node)]
    if isinstance(node, ast.FunctionDef):
        return [f"### `{prefix}{name}`", _code(_signature(prefix + name, node)), _doc(node)]
    return _class(prefix, name, node)


def _class(prefix: str, name: str, node: ast.ClassDef) -> list[str]:
    bases = [base for base in map(ast.unparse, node.bases) if base not in ("TypedDict",)]
    functions = [of for of in node.body if isinstance(of, ast.FunctionDef)]
    init = next((of for of in functions if of.name == "__init__"), None)
    shown = f"class {prefix}{name}" + (f"({', '.join(bases)})" if bases else "")
    # Other functions make the classes that take native objects.
    callable = init is not None and "_knee." not in ast.unparse(init.args)
    if init is not None and callable and (not bases or "gym" in bases[0]):
        shown = _signature(f"class {prefix}{name}", init)
    elif any("dataclass" in ast.unparse(of) for of in node.decorator_list):
        shown = _call(f"class {prefix}{name}", _fields(node))
    parts = [f"### `{prefix}{name}`", _code(shown), _doc(node)]
    if init is not None and (text := ast.get_docstring(init)) and "\n" in text:
        parts.append(_text(text.partition("\n")[2].strip()))
    rows = _attributes(node)
    if rows:
        parts.append("\n".join(["| attribute | type | meaning |", "|---|---|---|", *rows]))
    for of in functions:
        if (of.name.startswith("_") and of.name not in SPECIAL) or _is_property(of):
            continue
        parts += [f"#### `{name}.{of.name}`", _code(_signature(of.name, of)), _doc(of)]
    return parts


def _fields(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(of) for of in node.body if isinstance(of, ast.AnnAssign)]


def _attributes(node: ast.ClassDef) -> list[str]:
    """Rows of the fields, constants and properties."""
    # A section `Attributes:` of the docstring lists them already.
    documented = "Attributes:" in (ast.get_docstring(node) or "")
    rows: list[str] = []
    for of, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(of, ast.FunctionDef) and _is_property(of):
            name, kind = of.name, ast.unparse(of.returns) if of.returns else ""
            text = ast.get_docstring(of) or ""
        elif isinstance(of, ast.AnnAssign) and not documented:
            name, kind = ast.unparse(of.target), ast.unparse(of.annotation)
            if of.value is not None:
                kind += f" = {ast.unparse(of.value)}"
            text = _docstring_after(after) or ""
        elif isinstance(of, ast.Assign) and (found := _docstring_after(after)):
            name, kind, text = ast.unparse(of.targets[0]), ast.unparse(of.value), found
        else:
            continue
        if not name.startswith("_"):
            meaning = _linked(" ".join(text.replace("|", "\\|").split()))
            kind = kind.replace("|", "\\|").replace("_knee.", "")
            rows.append(f"| `{name}` | `{kind}` | {meaning} |")
    return rows


def _is_property(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(of) == "property" for of in node.decorator_list)


def _signature(name: str, node: ast.FunctionDef) -> str:
    """The call, one argument a line where it is long."""
    arguments = ast.unparse(node.args)
    words = _split(arguments)
    if words and words[0] == "self":
        words = words[1:]
    returns = "" if node.returns is None or "class " in name else f" -> {ast.unparse(node.returns)}"
    # Annotations contain no equals sign.
    words = [re.sub(r"^(\*{0,2}\w+: [^=]+)=", r"\1 = ", word) for word in words]
    return _call(name, words, returns)


def _call(name: str, words: list[str], returns: str = "") -> str:
    words, returns = [w.replace("_knee.", "") for w in words], returns.replace("_knee.", "")
    line = f"{name}({', '.join(words)}){returns}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {word}," for word in words), f"){returns}"])


def _split(arguments: str) -> list[str]:
    """Arguments at the commas outside brackets and strings."""
    words, depth, quoted, word = [], 0, "", ""
    for c in arguments:
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "'\"":
            quoted = c
        elif c in "[({":
            depth += 1
        elif c in "])}":
            depth -= 1
        if c == "," and depth == 0 and not quoted:
            words.append(word.strip())
            word = ""
        else:
            word += c
    return [*words, word.strip()] if word.strip() else words


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _doc(node: Definition) -> str:
    return _text(ast.get_docstring(node) or "")


def _clean(text: str) -> str:
    """Docstrings, unindented."""
    first, *rest = text.strip().splitlines()
    indent = min((len(r) - len(r.lstrip()) for r in rest if r.strip()), default=0)
    return "\n".join([first, *(r[indent:].rstrip() for r in rest)])


def _linked(text: str) -> str:
    """Names of pages become links from docs/reference/; powers stay as they are."""
    text = re.sub(r"(\d)\*\*(\d)", r"\1\\*\\*\2", text)

    def link(match: re.Match[str]) -> str:
        path = match[1]
        to = path.removeprefix("reference/") if path.startswith("reference/") else f"../{path}"
        return f"[{path}]({to})"

    return re.sub(r"`?docs/([\w/-]+\.md)`?", link, text)


ITEM = re.compile(r"^    (\w+): (.*)$")
TITLES = {
    "Args": "Parameters:",
    "Attributes": "Attributes:",
    "Raises": "Errors:",
    "Returns": "Result:",
}


def _text(doc: str) -> str:
    """A docstring as Markdown: its sections become lists, its lines of code a block."""
    result: list[str] = []
    for paragraph in doc.split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head.rstrip(":") in TITLES and head.endswith(":"):
            result += [TITLES[head.rstrip(":")], _items(rest)]
        elif re.match(r"^(import|from) \w|^\w[\w., ]* = ", head) or re.match(r"^\w+  +#", head):
            result.append(_code(paragraph))
        else:
            result.append(_linked(" ".join(paragraph.split()).replace("<", "&lt;")))
    merged: list[str] = []
    for part in result:
        # Lines of code with an empty line between them are one block.
        if merged and merged[-1].startswith("```python") and part.startswith("```python"):
            merged[-1] = merged[-1][:-4] + "\n\n" + part[len("```python\n") :]
        else:
            merged.append(part)
    return "\n\n".join(merged)


def _items(text: str) -> str:
    items: list[str] = []
    for line in text.splitlines():
        if match := ITEM.match(line):
            items.append(f"- `{match[1]}`: {match[2]}")
        elif items:
            items[-1] += f" {line.strip()}"
    return _linked("\n".join(items))
