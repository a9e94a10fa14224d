"""Writes values as YAML that `document.read` reads back as the same values, in a form that people like to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from agentfn.document.read import resolve

if TYPE_CHECKING:
    from agentfn.model import Json

#: A text of several lines is written as a block where a block can say it exactly.
_WIDTH = 118


class _Dumper(yaml.SafeDumper):
    """Keeps the order of keys, shares nothing by anchors, and quotes by the rules of YAML 1.2."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write every value out: an alias is hard to read and easy to break."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        """Indent lists below their key, as people do."""
        del indentless
        return super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if not isinstance(resolve(text), str) or not text.replace("\n", "").isprintable():
        style = '"'
    elif "\n" in text and _fits_block(text):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _fits_block(text: str) -> bool:
    lines = text.split("\n")
    return all(line == line.rstrip() for line in lines) and not lines[0].startswith(" ") and "\t" not in text


_Dumper.add_representer(str, _text)


def to_yaml(value: Json) -> str:
    """Return a JSON value as YAML, ending with a line feed."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False
    )
    return text
