"""What the commands of `cod3s judge` share: the study, its database, and the libraries that they need."""

from pathlib import Path
from typing import Annotated

import typer

from cod3s.errors import require

StudyArgument = Annotated[Path, typer.Argument(help="A study folder, made by `cod3s judge new`.")]
DatabaseOption = Annotated[
    str, typer.Option("--database", help="Where ratings are, such as postgresql://user@host/name; default a file.")
]


def require_judge() -> None:
    """Say at once which install is missing."""
    for module in ("pyarrow", "sqlalchemy", "fastapi", "uvicorn"):
        require(module, "judge")
