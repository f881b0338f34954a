"""Decides how Turngate is shown at work without any server: `turngate demo` (docs/demo.md)."""

from turngate.demo.run import run_demo, run_guards

__all__ = ["run_demo", "run_guards"]
