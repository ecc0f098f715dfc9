"""The command line: parse, call the public face, show progress. `main` is the console script."""

from rankcollapse.cli.app import main

__all__ = ["main"]
