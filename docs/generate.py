"""Write the pages of docs/reference from the code: settings, commands, tools, errors, operators and the record.

python docs/generate.py            write the pages
python docs/generate.py --check    write nothing; exit with 1 if a page is not what the code gives
"""

from __future__ import annotations

import ast
import asyncio
import difflib
import inspect
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from alphaloom.campaign.campaign import Settings
from alphaloom.desk.cli.main import EPILOG, app
from alphaloom.execution import ExecutionPolicy
from alphaloom.factors.describe.handbook import render_page
from alphaloom.ledger import records
from alphaloom.ledger.calls import ToolCall
from alphaloom.ledger.database.schema import SCHEMA_VERSION, ColumnTypes, tables
from alphaloom.mcp_servers import ServedCaller
from alphaloom.mcp_servers.access import EVERY_SCOPE, SUPERVISOR_SCOPES, Caller
from alphaloom.mcp_servers.tools import SERVERS, SUPERVISOR_SERVERS

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
REFERENCE = DOCS / "reference"
TUTORIAL = DOCS / "tutorials" / "first-campaign.md"
GENERATED = "Generated from the code by `make reference`; `make docs` fails when this page is stale."


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *([escape(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape(cell: str) -> str:
    """Return a text as the content of a table's cell: on one line, with its bars and angle brackets escaped."""
    flat = " ".join(cell.split()).replace("|", "\\|")
    parts = re.split(r"(`[^`]*`)", flat)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


def first_paragraph(text: str | None) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split())


def sentence(text: str) -> str:
    """Return a text with a capital letter first and a full stop last."""
    stripped = text.strip()
    return (
        stripped[:1].upper() + stripped[1:] + ("" if stripped.endswith((".", "?", "!", ":")) else ".")
        if stripped
        else ""
    )


# The campaign file.

UNDESCRIBED = {
    "market.synthetic.market_volatility": "daily volatility of the market, in log units",
    "market.synthetic.sector_volatility": "daily volatility of a sector beyond the market, in log units",
    "market.synthetic.industry_volatility": "daily volatility of an industry beyond its sector, in log units",
    "models.models": "models by a name of your choice, in order of preference within a tier",
    "models.roles": "tier by role; auto, and a role that is not named: as the prompt demands",
    "models.timeout_seconds": "seconds that one call to a model may take",
    "models.models.NAME.tier": "local: asked first, small and cheap; frontier: asked for what is hard",
    "models.models.NAME.input_cost_per_mtok": "US dollars per million tokens of prompts",
    "models.models.NAME.output_cost_per_mtok": "US dollars per million tokens of replies",
}
"""Descriptions of settings whose declaration has none."""


@dataclass(frozen=True)
class Section:
    """A section of the campaign file: its dotted path, its purpose, and its settings."""

    path: str
    purpose: str
    rows: list[tuple[str, str, str, str]]


def campaign_file() -> str:
    """Return the page of all settings of a campaign file."""
    sections = list(_iterate_sections(Settings, ""))
    body = "\n\n".join(_render_section(section) for section in sections)
    count = sum(len(section.rows) for section in sections)
    return f"""# Campaign file

{GENERATED}

A campaign file is YAML. `alphaloom init` writes one with a comment on every setting, `alphaloom run FILE` reads it,
and `--set SECTION.KEY=VALUE` overrides one setting on the command line. Every setting has a default, so an empty file
is valid. Unknown keys are refused, and all mistakes of a file are reported at once with their lines. Relative paths
start from the folder of the file.

There are {count} settings. In a path, `NAME` is a name of your choice and `[]` is an entry of a list.

{body}
"""


def execution_file() -> str:
    """Return the page of all limits of orders and breakers."""
    sections = [section for section in _iterate_sections(ExecutionPolicy, "") if section.rows]
    body = "\n\n".join(_render_section(section) for section in sections)
    return f"""# Execution file

{GENERATED}

`execution.yaml` in a workspace holds the limits of the order gate and of the circuit breakers, how orders are cut, and
the venues; without it these defaults hold. What each rule compares, and which rules bind a reduction:
[the room](../design/execution.md). Unknown keys are refused, and all mistakes of a file are reported at once with their
lines.

{body}
"""


def _render_section(section: Section) -> str:
    title = f"## `{section.path}`" if section.path else "## Top level"
    head = ("setting", "value", "default", "meaning")
    return f"{title}\n\n{sentence(section.purpose)}\n\n{table(head, section.rows)}"


def _iterate_sections(model: type[BaseModel], path: str) -> Iterator[Section]:
    """Yield the section of a model, then those inside it."""
    rows, inside = [], []
    for name, field in model.model_fields.items():
        place = f"{path}.{name}" if path else name
        below = list(_iterate_models(field.annotation, place))
        inside += below
        if below and below[0][1] == place and not _is_optional(field.annotation):
            continue  # a section of its own, always there
        meaning = field.description or UNDESCRIBED.get(place, "")
        if not meaning:
            raise SystemExit(f"{place} has no description: give its Field one, or add it to UNDESCRIBED in {__file__}")
        default = "required" if field.is_required() else _format_default(field.get_default(call_default_factory=True))
        rows.append((f"`{name}`", _describe_kind(field.annotation, field.metadata), default, meaning))
    yield Section(path, first_paragraph(model.__doc__), rows)
    for below_model, place in inside:
        yield from _iterate_sections(below_model, place)


def _iterate_models(annotation: Any, place: str) -> Iterator[tuple[type[BaseModel], str]]:
    """Yield the models inside a type, each with its path."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _iterate_models(inner[0], place)
    elif origin in (Union, types.UnionType):
        for part in inner:
            yield from _iterate_models(part, place)
    elif origin is dict:
        yield from _iterate_models(inner[1], f"{place}.NAME")
    elif origin in (tuple, list):
        yield from _iterate_models(inner[0], f"{place}[]")
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, place


def _is_optional(annotation: Any) -> bool:
    return type(None) in get_args(annotation)


PLAIN = {
    str: "text",
    bool: "`true` or `false`",
    int: "whole number",
    float: "number",
    Path: "path",
    type(None): "`null`",
}


def _describe_kind(annotation: Any, metadata: Iterable[Any] = ()) -> str:
    """Describe the values that a setting takes."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _describe_kind(inner[0], (*inner[1:], *metadata))
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_describe_kind(choice, metadata) for choice in inner))
    if origin is Literal:
        return ", ".join(f"`{choice}`" if choice != "" else "empty" for choice in inner)
    if origin is dict:
        return f"map of names to {_describe_kind(inner[1])}"
    if origin in (tuple, list):
        varied = origin is list or inner[-1] is Ellipsis
        return f"list of {_describe_kind(inner[0])}" if varied else f"list of {len(inner)}: {_describe_kind(inner[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a section"
    name = getattr(annotation, "__name__", str(annotation))
    return PLAIN.get(annotation, name) + (_describe_bounds(metadata) if annotation in (int, float) else "")


def _describe_bounds(metadata: Iterable[Any]) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    parts = [
        f"{words_of} {getattr(bound, sign):,}"
        for bound in metadata
        for sign, words_of in words.items()
        if hasattr(bound, sign)
    ]
    return f", {' and '.join(parts)}" if parts else ""


def _format_default(value: Any) -> str:
    """Return a default as it would be written in the file."""
    if value is None or value is PydanticUndefined:
        return "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    if isinstance(value, Mapping):
        return f"`{{{', '.join(f'{key}: {_format_plain(item)}' for key, item in value.items())}}}`"
    if isinstance(value, tuple | list):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{value}`"


def _format_plain(value: Any) -> str:
    if isinstance(value, BaseModel):
        return f"{{{', '.join(f'{key}: {item}' for key, item in value.model_dump(exclude_defaults=True).items())}}}"
    return str(value)


# The command line.


def command_line() -> str:
    """Return the page of all commands."""
    root = typer.main.get_command(app)
    commands = list(_iterate_commands(root, "alphaloom"))
    index = table(
        ("command", "what it does"),
        (
            (f"[`{name}`](#{name.replace(' ', '-')})", sentence(first_paragraph(command.help).split(". ")[0]))
            for name, command in commands
        ),
    )
    body = "\n\n".join(_render_command(name, command) for name, command in commands)
    return f"""# Command line

{GENERATED}

`alphaloom COMMAND --help` prints the same facts. {EPILOG} The codes are explained in [errors](errors.md#exit-codes).
With `--json` a command prints one JSON object on standard output; progress and messages go to standard error. `RUN` is
a run's id, its folder, or `latest`.

{index}

{body}
"""


def _iterate_commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every command with its full name; a group only if it does something by itself."""
    inside = getattr(command, "commands", {})
    for word, child in inside.items():
        yield from _iterate_commands(child, f"{name} {word}")
    if not inside or command.invoke_without_command:
        yield name, command


def _render_command(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=name)
    usage = f"{name} {' '.join(command.collect_usage_pieces(context))}".strip()
    epilog = str(command.epilog or "")
    paragraphs = [" ".join(paragraph.split()) for paragraph in inspect.cleandoc(str(command.help or "")).split("\n\n")]
    body = "\n\n".join(paragraphs).removesuffix(epilog).strip()
    rows = [row for parameter in command.params if (row := _describe_parameter(parameter, context))]
    options = f"\n\n{table(('argument or option', 'meaning'), rows)}" if rows else ""
    return f"## {name}\n\n```text\n{usage}\n```\n\n{body}{options}"


def _describe_parameter(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Return the notation and the meaning of an argument or option; None for a hidden one."""
    if getattr(parameter, "hidden", False):
        return None
    record = parameter.get_help_record(context)
    written, meaning = record or (parameter.make_metavar(context), getattr(parameter, "help", "") or "")
    return f"`{' '.join(written.split())}`", meaning


# The tools for MCP clients.


def mcp_tools() -> str:
    """Return the page of the MCP servers: tools with their arguments, resources and prompts."""
    return asyncio.run(_render_servers())


async def _render_servers() -> str:
    chapters = [await _render_server(name) for name in (*SERVERS, *SUPERVISOR_SERVERS)]
    return f"""# MCP tools

{GENERATED}

`alphaloom serve mcp NAME` serves one of these servers, `alphaloom serve mcp --all` all but `compliance` on one
connection. A caller sees only the tools that its scopes allow. Every answer is a JSON object. The tables of answers
name the keys that a caller needs; there are further ones. A refusal is an object too, with the keys of
[an error](errors.md). The hint of a refused argument ends with an example of a right call. Every call is
[recorded](record.md#tool-calls). No answer has more than 200 KB, long lists have a cursor, and no tool but those of
`compliance` shows data after the search window.

Scopes: {", ".join(f"`{each}`" for each in sorted(EVERY_SCOPE))}, `data:jurisdiction:XX`
and, for supervisors, `supervise`. Python code in
`score_factor` needs `data:read` as well, because code can report what it read in an error.

{chr(10).join(chapters)}"""


def _make_caller(scopes: frozenset[str]) -> ServedCaller:
    """Return the caller that the servers are built for, with these scopes; a list of tools opens no data."""
    evaluator: Any = SimpleNamespace(run="docs", ledger=SimpleNamespace(workspace=Path()))
    served = ServedCaller.for_campaign(evaluator, lambda call: None, lambda: datetime.now(UTC))
    return replace(served, entry=replace(served.entry, caller=Caller("docs", scopes)))


async def _render_server(name: str) -> str:
    build, every = {**SERVERS, **SUPERVISOR_SERVERS}[name], EVERY_SCOPE | SUPERVISOR_SCOPES
    server = build(_make_caller(every))
    listed = {scope: await build(_make_caller(frozenset({scope}))).list_tools() for scope in sorted(every)}
    scopes = {tool.name: scope for scope, tools in listed.items() for tool in tools}
    tools = [_render_tool(tool, scopes[tool.name]) for tool in await server.list_tools()]
    resources = [(str(entry.uri), entry.description) for entry in await server.list_resources()]
    resources += [(entry.uri_template, entry.description) for entry in await server.list_resource_templates()]
    rows = [(f"`{uri}`", first_paragraph(description)) for uri, description in resources]
    extra = f"\n### Resources of `{name}`\n\n{table(('address', 'content'), rows)}\n" if rows else ""
    prompts = [(f"`{entry.name}`", first_paragraph(entry.description)) for entry in await server.list_prompts()]
    extra += f"\n### Prompts of `{name}`\n\n{table(('prompt', 'purpose'), prompts)}\n" if prompts else ""
    return f"## `{name}`\n\n{server.instructions}\n\n{chr(10).join(tools)}{extra}"


def _render_tool(tool: Any, scope: str) -> str:
    schema, hints = tool.input_schema, tool.annotations
    needed = schema.get("required", [])
    rows = [
        (
            f"`{name}`",
            _describe_values(part, schema),
            _format_tool_default(part, name in needed),
            _describe_argument(part, schema),
        )
        for name, part in schema.get("properties", {}).items()
    ]
    effect = "reads only" if hints and hints.read_only_hint else "writes to the record"
    effect = "spends a trial, which cannot be undone" if hints and hints.destructive_hint else effect
    paragraphs = "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(tool.description or "").split("\n\n"))
    arguments = table(("argument", "value", "default", "meaning"), rows) if rows else "No arguments."
    head = f"### `{tool.name}`\n\n*{tool.title}*\n\n{paragraphs}\n\nScope `{scope}`; {effect}."
    return f"{head}\n\n{arguments}\n\n{_render_answer(tool.output_schema)}\n"


def _render_answer(schema: Mapping[str, Any]) -> str:
    rows = [(f"`{name}`", _describe_type(part), part["description"]) for name, part in schema["properties"].items()]
    return table(("answer", "value", "meaning"), rows)


def _describe_type(part: Mapping[str, Any]) -> str:
    kinds = [part["type"]] if isinstance(part["type"], str) else part["type"]
    return " or ".join({"array": "list"}.get(kind) or _describe_values({"type": kind}, {}) for kind in kinds)


def _format_tool_default(schema: Mapping[str, Any], needed: bool) -> str:
    return "required" if needed else _format_default(schema.get("default"))


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return {**root["$defs"][name], **{key: value for key, value in schema.items() if key != "$ref"}} if name else schema


def _describe_argument(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    resolved = _resolve(schema, root)
    keys = resolved.get("properties", {})
    inner = "; ".join(
        f"`{name}`: {_describe_values(part, root)}" + (f" ({part['description']})" if "description" in part else "")
        for name, part in keys.items()
    )
    return first_paragraph(str(resolved.get("description", ""))).rstrip(".") + (f". Keys: {inner}" if inner else "")


def _describe_values(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Describe the values that a JSON schema allows."""
    resolved = _resolve(schema, root)
    if "anyOf" in resolved:
        return " or ".join(_describe_values(choice, root) for choice in resolved["anyOf"])
    if "enum" in resolved or "const" in resolved:
        return ", ".join(f"`{choice}`" for choice in resolved.get("enum", [resolved.get("const")]))
    if resolved.get("type") == "array":
        size = _format_span(resolved.get("minItems"), resolved.get("maxItems"))
        return f"list{f' of {size}' if size else ''}: {_describe_values(resolved['items'], root)}"
    plain = {"string": "text", "integer": "whole number", "boolean": "`true` or `false`", "null": "`null`"}
    kind = plain.get(str(resolved.get("type")), str(resolved.get("type", "any")))
    kind = "day, YYYY-MM-DD" if resolved.get("format") == "date" else kind
    size = _format_span(resolved.get("minimum"), resolved.get("maximum"))
    length = f", at most {resolved['maxLength']:,} characters" if "maxLength" in resolved else ""
    return f"{kind}{f', {size}' if size else ''}{length}"


def _format_span(low: Any, high: Any) -> str:
    if low is None and high is None:
        return ""
    return (
        f"{low} to {high}"
        if low is not None and high is not None
        else f"at least {low}"
        if high is None
        else f"at most {high}"
    )


# Errors.

EXIT_CODES = {
    "0": "done; also when nothing was accepted",
    "1": "refused, a check failed, or an internal error",
    "2": "bad input: a wrong option, setting, file or formula",
    "3": "a capability is missing on this machine",
    "4": "a budget ended",
    "130": "interrupted, or stopped by a person",
}
OWN_CODES = {
    "internal": ("1", "a mistake in Alphaloom itself; the stack is in the file that the message names"),
    "interrupted": ("130", "Ctrl-C, SIGTERM, or `alphaloom stop`"),
    "memory": ("3", "this machine has too little memory"),
    "system": ("2", "the operating system refused: a full disk, missing permission, a path that is not there"),
    "usage": ("2", "a command or option that does not exist, or a value that it does not take"),
}
"""Exit code and meaning of errors that the command line makes of foreign exceptions."""
BASES = ("AlphaloomError", "SandboxError")


@dataclass(frozen=True)
class ErrorCode:
    """One code: the room, the class, the exit code, and the meaning."""

    code: str
    exit_code: str
    raised: str
    meaning: str
    room: str


def errors() -> str:
    """Return the page of error codes and exit codes, read from the source without importing it."""
    codes = _merge_codes(_iterate_codes())
    rooms: dict[str, list[ErrorCode]] = {}
    for entry in codes:
        rooms.setdefault(entry.room, []).append(entry)
    head = ("code", "exit", "raised as", "meaning")
    chapters = [
        f"### `{room}`\n\n" + table(head, ((f"`{e.code}`", e.exit_code, f"`{e.raised}`", e.meaning) for e in rows))
        for room, rows in rooms.items()
    ]
    exits = table(("exit code", "meaning"), EXIT_CODES.items())
    return f"""# Errors and exit codes

{GENERATED}

Every error names what happened, where, and what to do. On the command line it is a block on standard error; with
`--json`, and from an MCP tool, it is an object:

| key | content |
| --- | --- |
| `code` | the name of the error, stable, for programs |
| `field` | the setting, argument, column or file that is wrong; empty if none is |
| `got` | the value that was refused |
| `allowed` | what would have been accepted |
| `hint` | what to do now |
| `message` | what is wrong, in one sentence |
| `mistakes` | for settings: each mistake with its line |

In Python all errors derive from `alphaloom.ledger.AlphaloomError`, except those of the sandbox, which derive from
`alphaloom.sandbox.SandboxError`. Both have the keys above as attributes and the method `record()`.

## Exit codes

{exits}

## Error codes

{chr(10).join(f"{entry}{chr(10)}" for entry in chapters)}"""


def _iterate_modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield every module of the package with its room."""
    for room in sorted(path.parent for path in ROOT.glob("*/__init__.py")):
        if room.name != "tests":
            for path in sorted(room.rglob("*.py")):
                yield room.name, ast.parse(path.read_text(encoding="utf-8"))


def _iterate_codes() -> Iterator[ErrorCode]:
    """Yield the codes of all error classes, and those given in a call."""
    modules = list(_iterate_modules())
    classes = {
        node.name: (room, node) for room, tree in modules for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    ours = [name for name in classes if _descends(name, classes)]
    for name in ours:
        room, node = classes[name]
        code, status = _find_inherited(name, "code", classes), _find_inherited(name, "exit_code", classes)
        yield ErrorCode(code, status, name, first_paragraph(ast.get_docstring(node)), room)
    for room, tree in modules:
        for function, call in _iterate_calls(tree):
            code = _find_literal(call, "code")
            raised = _name_callee(call)
            if code and raised in ours:
                status = _find_literal(call, "exit_code") or _find_inherited(raised, "exit_code", classes)
                yield ErrorCode(code, status, raised, _find_message(call, function), room)
            elif raised == "make_record" and call.args and isinstance(call.args[0], ast.Constant):
                own = str(call.args[0].value)
                yield ErrorCode(own, OWN_CODES[own][0], "command line", OWN_CODES[own][1], room)


def _descends(name: str, classes: Mapping[str, tuple[str, ast.ClassDef]]) -> bool:
    if name in BASES:
        return True
    return name in classes and any(_descends(base, classes) for base in _list_bases(classes[name][1]) if base != name)


def _list_bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).rpartition(".")[2] for base in node.bases]


def _find_inherited(name: str, attribute: str, classes: Mapping[str, tuple[str, ast.ClassDef]]) -> str:
    """Return a class's code or exit code: its own, or that of the nearest base with one."""
    for line in classes[name][1].body:
        if not isinstance(line, ast.Assign | ast.AnnAssign) or line.value is None:
            continue
        targets = line.targets if isinstance(line, ast.Assign) else [line.target]
        if any(isinstance(target, ast.Name) and target.id == attribute for target in targets):
            return str(ast.literal_eval(line.value))
    for base in _list_bases(classes[name][1]):
        if base in classes and (found := _find_inherited(base, attribute, classes)):
            return found
    return ""


def _iterate_calls(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Yield every call with the docstring of the function around it."""
    for node in ast.iter_child_nodes(tree):
        inner = function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = first_paragraph(ast.get_docstring(node)) or function
        if isinstance(node, ast.Call):
            yield inner, node
        yield from _iterate_calls(node, inner)


def _name_callee(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _find_literal(call: ast.Call, name: str) -> str:
    for keyword in call.keywords:
        if keyword.arg == name and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return ""


def _find_message(call: ast.Call, function: str) -> str:
    """Return the literal message of an error in a call, with … for each inserted value.

    If the call has no literal message, return the description of the function that makes the error, or nothing.
    """
    argument = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "message"), None)
    parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
    message = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in parts)
    if len(re.findall(r"[a-z]+", message)) > 2:
        return f"“{re.sub('[…:. ]*…[…:. ]*$', ' …', message).strip()}”"
    returned = function.removeprefix("Return the error for ")
    return sentence(returned) if returned != function else ""


def _merge_codes(codes: Iterable[ErrorCode]) -> list[ErrorCode]:
    """Return the codes by room and name, one row for a code that several calls of one class give."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    docs: dict[str, str] = {}
    for entry in codes:  # classes come before calls
        docs.setdefault(entry.raised, entry.meaning)
        rows.setdefault((entry.room, entry.code, entry.raised, entry.exit_code), []).append(entry.meaning)
    return [
        ErrorCode(code, status, raised, "; ".join(filter(None, dict.fromkeys(meanings))) or docs[raised], room)
        for (room, code, raised, status), meanings in sorted(rows.items())
    ]


# The record.

TABLES = {
    "runs": "campaigns, and acts by hand that judge or serve; `body` has the settings, the panel's digest and the seed",
    "statuses": "what a run was and is: running, paused, stopped, done",
    "name_lists": "the symbols of a window, stored once under their digest",
    "trials": "a test on a selection window, written before the days are read",
    "outcomes": "what a trial showed",
    "openings": "openings of sealed (hold-out) days, numbered over all campaigns",
    "boundaries": "where search, selection and sealed days lie, fixed by the first campaign on the data",
    "watches": "which days of the library's factors were read on new data",
    "fingerprints": "runs of rounded daily returns, by which equal data are recognised under other names",
    "holds": "what model calls under way hold of a budget, at their worst case",
    "releases": "holds that ended, and why",
    "call_heads": "the last lines of the record of tool calls when a ledger was closed",
    "leaves": "the transparency log: one leaf for each row of the other tables, in order of arrival",
    "log_keys": "the keys that sign the log, since when and why",
    "retirements": "keys of the log that sign no more, since when and why",
    "erasures": "what was erased of bodies and stored texts, by whom, when and why, with the digests before and after",
    "log_checkpoints": "the signed roots of the log",
    "attempts": "everything proposed, also what was refused before it ran",
    "evaluations": "factors scored on the search window",
    "calls": "answered model calls, with tokens and cost",
    "verdicts": "what the gate decided, with every reason",
    "artefacts": "files of a run, with their digests",
    "events": "everything else, by kind; see below",
    "library": "factors that the library keeps",
    "standings": "changes of a library factor's status: live, decaying, retired, watched",
    "sightings": "the RankIC of a library factor on one new day",
}
"""The content of each table of the ledger."""
RECORDS: dict[str, type[Any]] = {
    "attempts": records.Attempt,
    "evaluations": records.Evaluation,
    "calls": records.ModelCall,
    "verdicts": records.VerdictRow,
    "artefacts": records.Artefact,
    "events": records.Event,
    "library": records.LibraryRow,
    "standings": records.StatusChange,
    "sightings": records.Sighting,
}
FILES = {
    "results.json": "the whole outcome; equal bytes for equal seed, data, settings and starting record",
    "curves.json": "daily series of the tested and accepted factors and of the book, for the report",
    "sealed.json": "daily series of sealed days, if they were opened",
    "remark.json": "a model's words on the run, where its campaign names a model for them; its digest is recorded",
    "report.html": "the report: one file, no script, no network",
    "combination.parquet": "date, symbol, score of the accepted factors together, if there are any",
}
RESULTS = {
    "accepted": "factors and sets that passed every step of the gate",
    "attempts": "how many factors were proposed, and how many were refused for which reason",
    "baseline": "the published formulas on search days, and their combination beside the campaign's; null if left out",
    "book": "the combination traded on paper: figures after costs",
    "clusters": "groups of candidates whose returns move together",
    "combination": "how accepted factors are weighed and traded; null if none were accepted",
    "cross_validation": "combinatorial, purged cross-validation of choosing the best candidate",
    "data": "name, digest, size and span of the panel, with its notes",
    "diversity": "how varied the hypotheses were",
    "ended": "why the search ended before its budget; null if it did not",
    "evaluations": "factors scored on the search window",
    "format": "version of this file's layout",
    "hypotheses": "hypotheses that were scored",
    "leaders": "the few formulas that between them explain the best search results",
    "looks_reused": "verdicts that rest on an equal test of an earlier run, which was not charged again",
    "operators": "what each kind of change to a formula did on search days",
    "overfitting": "probability of backtest overfitting over the candidates",
    "own": "what the person brought along, by digest",
    "power": "the smallest RankIC that the next trial could prove",
    "power_before": "the same before the first trial",
    "prior_trials": "tests on the same days by other runs, and declared ones",
    "members": "factors of accepted combinations, each with what its closed test says",
    "proven": "factors whose forecast is proven and does not pay for trading them alone",
    "untested": "scored factors that never went to the gate",
    "reasons": "how many scored factors had a mechanism, were data-mined, or got a mechanism after scoring",
    "rejected": "factors that the gate refused, or tested in vain, each with its reasons",
    "report": "the report's file name",
    "researcher": "what proposed the factors: models, or the offline researcher",
    "reviews": "decisions of people, where the campaign asks for approval",
    "sealed": "the sealed (hold-out) exam, if it was taken",
    "seed": "the campaign's seed",
    "settings": "the evidence settings and the budget",
    "signals": "the risk gate's decision on the book of the last day",
    "spend": "model calls, tokens and dollars, by model and role",
    "steer": "what the person asked the agents to look for",
    "stream_rules": "what other rules for a stream of tests would have said",
    "stress": "what each accepted factor keeps under stress",
    "superior": "Hansen's test of superior predictive ability over the candidates",
    "truth": "on a synthetic market: how accepted factors agree with the planted alphas",
    "trials": "tests on the selection window that this run was charged for",
    "warnings": "what a person must know before using the result",
    "watchlist": "promising factors that are not proven",
    "windows": "the three windows, openings of the sealed one, embargo and horizon",
}
"""The keys of results.json; the first tutorial prints them, and the two must agree."""
ONLY_SOMETIMES = {"reviews", "truth"}
EVENTS = {
    "alarm-acknowledged": "a person's word on a leak alarm: the reason, and the figure that they saw",
    "agents.*": "what an agent wrote: hypothesis, recall, proposal, drafts, score, critique, and others of the search",
    "agents.review": "what people decided on a case, as the agents are told of it once the run goes on",
    "bench": "what the bench found of the models, prompt pages and router of a campaign, with their digests",
    "breaker.cleared": "two people cleared a circuit breaker of a book: who, when and why",
    "breaker.trip": "a circuit breaker of a book that tripped: its value against its limit, and what it stops",
    "change": "a version of a model, prompt page, router, policy or software that came into use, with its difference",
    "baseline": "the published formulas' scores and their combination, of search days alone",
    "blind-judgement": "what a person thought of a case before its verdict was shown to them; no agent can read it",
    "case": "a factor that passed the gate and waits for a person",
    "case-file": "the digest of what the person was shown",
    "case-members": "the library rows of the members of such a factor, if it is a combination",
    "claim": "a hypothesis as it was judged",
    "close": "a person asked the run to end with a report",
    "decaying": "library factors that were decaying when the run began",
    "draft": "a factor that a client registered",
    "exposure-audit": "whether the scores of a factor carry group attributes, and the smallest gap that was visible",
    "look-failed": "a trial that ended with an error; another run may take it",
    "library": "the library's factors when the run began",
    "outcome": "how a model call ended, from which the learned routing policy learns",
    "paid": "a trial that another run began, was cut short, and this run was charged for",
    "power": "what the selection window could prove before the first trial",
    "ran": "Python code that ran and was refused; it was charged",
    "retired": "library factors that were retired when the run began",
    "revalidation": "a person looked at an accepted factor again, and why it stays, with the digest of what they saw",
    "review": "a person's decision on a case, numbered: of each person the last one stands",
    "book.flow": "money that a person pays into a paper book or takes out of it",
    "book.mode": "a person halts a paper book or holds it to reductions, or two resume it; a step of a later day obeys",
    "book.step": "one step of a paper book, and the digest of what it read",
    "order.break": "a fill that differs between the record of a session and the venue's drop copy; it halted trading",
    "order.cancel": "a person asks for the end of an order of a book, of a parent's orders, or of all of a session",
    "order.done": "every order of a session has ended, and the book's step may take the fills in",
    "order.measured": "what each order of a session cost, against arrival and against what its schedule aims at",
    "order.halt": "the halt file stopped a session",
    "order.plan": "the orders with which a session of a book begins: arrival prices, slices, what is left out, costs",
    "order.report": "what a venue says of an order",
    "order.ruled": "an order with the ruling of the order gate, on record before it is sent",
    "order.unknown": "an order of a process that ended before a report, of which the venue says nothing",
    "risk": "a decision of the risk gate",
    "route": "which model a call went to, and why",
    "screening": "the seed of the causality screens of Python code",
    "mechanism": "a mechanism stated after scoring: the claim, its refuter, and whether it stands",
    "seal-decision": "a person's decision on it: agreed or refused, why, who, when, digests of request and page",
    "seal-request": "what a campaign asks to open of its sealed days, where the policy wants a person to agree",
    "sealed-series": "the daily RankIC of a sealed exam, by factor and of the combination",
    "set": "the members of a combination that was submitted",
    "weighing": "weights and trading rate of a combination, fixed on search days",
    "start": "a person started the run at the desk, or went on with it there",
    "stop": "a person asked the run to stop",
    "way": "what the learned routing policy chose for a call, and why",
}
"""The meaning of the kinds of events."""
AT_THE_START = {"decaying", "library", "retired"}
"""Kinds that are written in a loop, which reading the source does not find."""


def record() -> str:
    """Return the page of the record: files, results, tables, events and tool calls."""
    _compare("tables of the ledger", TABLES, tables(ColumnTypes("serial", "integer", "text")))
    printed = re.search(r"<!-- results.json -->\n+```text\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    shown = {*printed[1].split()} if printed else set()
    _compare("keys of results.json", {*RESULTS} - ONLY_SOMETIMES, shown - ONLY_SOMETIMES)
    kinds = {
        kind if not kind.startswith("agents.") or kind == "agents.review" else "agents.*"
        for kind in _find_event_kinds()
    }
    _compare("kinds of events", EVENTS, kinds | AT_THE_START)
    keys = ", ".join(f"`{column.name}`" for column in fields(ToolCall))
    return f"""# The record

{GENERATED}

A workspace (`.alphaloom` by default) holds the record of all its campaigns. Nothing in it is updated or deleted. Keys
depend on content, so a step that runs again adds nothing. `alphaloom log`, `alphaloom status` and
`alphaloom evidence verify` read it; this page is for programs and auditors.
[The ledger's design page](../design/ledger.md) says why it is built this way.

## Files of a run

They lie in `runs/RUN/` of the workspace, and the ledger has their digests.

{table(("file", "content"), ((f"`{name}`", text) for name, text in FILES.items()))}

## results.json

It holds no clock, no path and not the run's id. Numbers are rounded, lists of factors are sorted by id.

{table(("key", "content"), ((f"`{name}`", text) for name, text in RESULTS.items()))}

## Tables

The ledger is `ledger.sqlite`, an SQLite file, or a PostgreSQL schema with the same tables (layout {SCHEMA_VERSION}).
`at` is the UTC time of writing. `body` is canonical JSON with the record's other fields.

{_render_tables()}

## Events

An event has a run, a kind, a key and a body. The first body under a key stands.

{table(("kind", "content"), ((f"`{name}`", text) for name, text in EVENTS.items()))}

## Tool calls

Each call of an MCP tool is one line of JSON in `audit/calls-*.jsonl` of the workspace: {keys}. Arguments and answers
are kept as digests. The lines are chained by digests; `alphaloom audit verify` checks the chain and
`alphaloom audit tail` prints it.
"""


def _render_tables() -> str:
    rows = []
    for name, columns in tables(ColumnTypes("serial", "integer", "text")).items():
        names = re.findall(r"(?:^|,)\s*([a-z_]+)\s+(?:serial|integer|text)", columns)
        body_keys = (
            [column.name for column in fields(RECORDS[name]) if column.name not in names] if name in RECORDS else []
        )
        body = f" (`body`: {', '.join(f'`{column}`' for column in body_keys)})" if body_keys else ""
        rows.append((f"`{name}`", TABLES[name], ", ".join(f"`{column}`" for column in names) + body))
    return table(("table", "content", "columns"), rows)


def _find_event_kinds() -> set[str]:
    """Return the kinds of events that the package writes, read from its calls."""
    modules = list(_iterate_modules())
    constants = {name: value for _, tree in modules for name, value in _iterate_constants(tree)}
    kinds = set()
    for _, tree in modules:
        for _, call in _iterate_calls(tree):
            kind = call.args[1] if _writes_event(call) and len(call.args) > 1 else None
            if isinstance(kind, ast.Constant):
                kinds.add(str(kind.value))
            elif isinstance(kind, ast.JoinedStr):
                kinds.add("agents.*")
            elif isinstance(kind, ast.Name) and kind.id in constants:
                kinds.add(constants[kind.id])
    return kinds


def _writes_event(call: ast.Call) -> bool:
    """Return whether a call writes an event, `ledger.events.record(run, kind, ...)`, or makes an `Event`."""
    return f".{ast.unparse(call.func)}".endswith((".events.record", ".Event"))


def _iterate_constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the text constants of a module."""
    for node in tree.body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield from _iterate_texts(target, node.value)


def _iterate_texts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    """Yield the names of an assignment that are given a text, also inside a tuple."""
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=False))
    for name, text in pairs:
        if isinstance(name, ast.Name) and isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield name.id, text.value


def _compare(subject: str, described: Iterable[str], present: Iterable[str]) -> None:
    """Refuse descriptions of missing things, and things without a description."""
    missing, gone = {*present} - {*described}, {*described} - {*present}
    if missing or gone:
        raise SystemExit(f"{subject}: describe {sorted(missing)} and remove {sorted(gone)} in {Path(__file__).name}")


PAGES = {
    "operators": render_page,
    "campaign-file": campaign_file,
    "execution-file": execution_file,
    "command-line": command_line,
    "mcp-tools": mcp_tools,
    "errors": errors,
    "record": record,
}


def main() -> int:
    """Write the pages, or compare them."""
    stale = 0
    for name, make in PAGES.items():
        path, text = REFERENCE / f"{name}.md", make()
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif old != text:
            changes = difflib.unified_diff(old.splitlines(), text.splitlines(), path.name, "the code", n=0, lineterm="")
            print(*list(changes)[:20], sep="\n")
            print(f"docs/reference/{path.name} is stale: make reference writes it again")
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
