"""`cod3s serve` and `cod3s mcp`: the explorer page with its JSON API, and tools for agents."""

import logging
import webbrowser
from typing import Annotated

import typer

import cod3s
from cod3s.cli.parameters import BundleOption, Options, takes_options
from cod3s.errors import require
from cod3s.web.address import link, listen
from cod3s.web.limits import Limits

_REMEMBERED = 100_000  # hypotheses per model, 50 MB: a slider that only changes the ranking is answered at once


AllowHostOption = Annotated[
    list[str] | None, typer.Option(help="Also accept this host name, such as that of a proxy; repeatable.")
]


@takes_options(Limits)
def serve(
    options: Options,
    bundle: BundleOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8000,
    open: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    cors: Annotated[
        list[str] | None, typer.Option(help="Let pages of this origin call the API; repeatable.")
    ] = None,
    allow_host: AllowHostOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log requests.")] = False,
) -> None:
    """Serve the explorer page and its JSON API until ctrl-C."""
    require("fastapi", "serve")
    require("uvicorn", "serve")
    from cod3s.web.app import create_app
    from cod3s.web.running import bound_heaps, end_process, run_until_stopped

    limits = Limits(**options)
    bound_heaps()
    with listen(host, port) as listener:
        generator = cod3s.load(bundle, cache=_REMEMBERED)
        app = create_app(generator, limits, host=host, allowed_hosts=allow_host or (), origins=cors or ())
        logging.getLogger("cod3s.web").setLevel(logging.WARNING if quiet else logging.INFO)
        address = link(host, listener)
        typer.echo(f"cod3s serves the bundle {generator.facts.name} at {address} (ctrl-C to stop)")
        if open:
            webbrowser.open(address)
        run_until_stopped(app, listener, log_config=None)
    end_process()


def mcp(bundle: BundleOption = None) -> None:
    """Offer generate, select and sign as Model Context Protocol tools until stdin is closed."""
    require("mcp", "mcp")
    from cod3s.web.agents import make_server

    make_server(bundle).run(transport="stdio")
