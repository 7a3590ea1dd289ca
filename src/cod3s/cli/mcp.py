"""`cod3s mcp`: generate, select and sign as tools for agents, over stdin and stdout."""

from cod3s.cli.parameters import BundleOption


def mcp(bundle: BundleOption = None) -> None:
    """Serve the tools generate, select and sign by the Model Context Protocol, until stdin is closed."""
    from cod3s.errors import require

    require("mcp", "mcp")
    from cod3s.agents import make_server

    make_server(bundle).run(transport="stdio")
