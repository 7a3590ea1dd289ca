"""`cod3s mcp`: generate, select and sign as tools for agents, over stdin and stdout."""

import typer

from cod3s.cli.parameters import BundleOption


def register(app: typer.Typer) -> None:
    app.command("mcp", epilog="Example for an agent's settings: command cod3s, arguments mcp")(mcp)


def mcp(bundle: BundleOption = None) -> None:
    """Serve the tools generate, select and sign by the Model Context Protocol, until stdin is closed."""
    from cod3s.errors import require

    require("mcp", "mcp")
    from cod3s.agents import make_server

    make_server(bundle).run(transport="stdio")
