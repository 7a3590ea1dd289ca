"""The shape of every error that a server answers: `{"error": {"message", "hint"}}`."""


def error_body(message: str, hint: str = "") -> dict[str, dict[str, str]]:
    """What went wrong, and the way out."""
    return {"error": {"message": message, "hint": hint}}
