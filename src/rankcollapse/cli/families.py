"""`rankcollapse families`: which model families are supported, and what each adapter covers."""

import typer

from rankcollapse.cli.failures import failures_as_lines


def families() -> None:
    """List the supported model families and what is covered of each."""
    with failures_as_lines(debug=False):
        from rich import box
        from rich.console import Console
        from rich.table import Table

        from rankcollapse.families import FAMILIES

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        table.add_column("family", no_wrap=True)
        table.add_column("model_type", no_wrap=True)
        table.add_column("what is covered", overflow="fold")
        for family in dict.fromkeys(FAMILIES.values()):
            table.add_row(family.title, ", ".join(family.model_types), family.covers)
        Console().print(table)
        typer.echo("\nmodel_type is the field of that name in a model's config.json.")
