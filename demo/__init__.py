"""Decides how Turngate is shown at work without any server: `turngate demo` (docs/demo.md)."""

from turngate.demo.run import run_demo

__all__ = ["run_demo"]
