"""`cod3s serve` and `cod3s mcp`: the explorer with its JSON API, an endpoint before a server, tools for agents."""

import logging
import os
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

import cod3s
from cod3s.cli.parameters import BundleOption, Options, takes_options
from cod3s.errors import UsageError, require
from cod3s.web.address import link, listen, stays_local
from cod3s.web.limits import ENDPOINT, Limits

_REMEMBERED = 100_000  # hypotheses per model, 50 MB: a slider that only changes the ranking is answered at once
_KEY_VARIABLE = "OPENAI_API_KEY"

AllowHostOption = Annotated[
    list[str] | None, typer.Option(help="Also accept this host name, such as that of a proxy; repeatable.")
]
UpstreamOption = Annotated[
    str | None,
    typer.Option(
        help="Serve no bundle, but an OpenAI-compatible endpoint before this server, such as "
        "http://localhost:11434/v1; n answers are n different answers."
    ),
]
ApiKeyOption = Annotated[
    str,
    typer.Option(
        envvar="COD3S_API_KEY",
        help=f"--upstream: the key that clients must send; the upstream gets the one in {_KEY_VARIABLE}.",
        show_default=False,
    ),
]


@takes_options(Limits)
def serve(
    options: Options,
    bundle: BundleOption = None,
    upstream: UpstreamOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 8000,
    open: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    cors: Annotated[
        list[str] | None, typer.Option(help="Let pages of this origin call the API; repeatable.")
    ] = None,
    allow_host: AllowHostOption = None,
    api_key: ApiKeyOption = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log requests.")] = False,
) -> None:
    """Serve the explorer page and its JSON API until ctrl-C; or, with --upstream, an endpoint before a server.

    The endpoint passes on what is sent to /v1 and the keys of clients; a request with "n": 5 gets five answers
    that mean different things.
    """
    require("fastapi", "serve")
    require("uvicorn", "serve")
    from cod3s.web.running import bound_heaps, end_process, run_until_stopped

    if upstream is None and api_key:
        raise UsageError(
            "--api-key goes with --upstream", hint="to serve the explorer to others, see docs/serve.md"
        )
    if upstream is not None and not api_key and not (stays_local(host) and not allow_host):
        raise UsageError(
            "others may use the endpoint only with a key",
            hint="give it with --api-key or in COD3S_API_KEY, or leave out --host and --allow-host",
        )
    bound_heaps()
    reach: dict[str, Any] = {"host": host, "allowed_hosts": allow_host or (), "origins": cors or ()}
    with listen(host, port) as listener:
        if upstream is None:
            app, name = _explorer(bundle, Limits(**options), reach)
        else:
            app, name = _endpoint(upstream, api_key, Limits(**{**ENDPOINT, **options}), reach)
        logging.getLogger("cod3s.web").setLevel(logging.WARNING if quiet else logging.INFO)
        address = link(host, listener)
        typer.echo(f"cod3s serves {name} at {address} (ctrl-C to stop)")
        if open:
            webbrowser.open(address)
        run_until_stopped(app, listener, log_config=None)
    end_process()


def _explorer(bundle: Path | None, limits: Limits, reach: dict[str, Any]) -> tuple[Any, str]:
    from cod3s.web.app import create_app

    generator = cod3s.load(bundle, cache=_REMEMBERED)
    return create_app(generator, limits, **reach), f"the bundle {generator.facts.name}"


def _endpoint(upstream: str, api_key: str, limits: Limits, reach: dict[str, Any]) -> tuple[Any, str]:
    require("openai", "llm")
    from cod3s.web.endpoint import create_endpoint

    key = os.environ.get(_KEY_VARIABLE, "")
    app = create_endpoint(upstream, limits, api_key=api_key, upstream_key=key, **reach)
    return app, f"different answers of {upstream}"


def mcp(bundle: BundleOption = None) -> None:
    """Offer generate, select, diversify and sign as Model Context Protocol tools until stdin is closed."""
    require("mcp", "mcp")
    from cod3s.web.agents import make_server

    make_server(bundle).run(transport="stdio")
