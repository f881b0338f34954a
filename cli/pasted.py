"""Decides how a part of a policy is written down for somebody to paste, whoever chose the names that stand in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Columns after which a flow of values goes on in the next line.
_WIDTH = 116


def as_yaml(part: Mapping[str, Any], *, flow: bool | None = False) -> str:
    """YAML that reads back the same, in characters that are seen. A name with others in it is written as one.

    `flow`: as PyYAML's `default_flow_style`.
    """
    import yaml

    class Dumper(yaml.SafeDumper):
        """Strings of others' choosing."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if value.isprintable() else '"')

    def dumped(*, as_it_is: bool) -> str:
        return str(
            yaml.dump(
                dict(part),
                Dumper=Dumper,
                allow_unicode=as_it_is,
                default_flow_style=flow,
                width=_WIDTH,
                sort_keys=False,
            )
        )

    Dumper.add_representer(str, text)
    written = dumped(as_it_is=True)
    return written if written.replace("\n", "").isprintable() else dumped(as_it_is=False)
