"""Write a bundle's model card."""

from cod3s.bundle.facts import BundleFacts


def model_card(bundle: BundleFacts, about: str = "") -> str:
    """What a person should know before using the bundle."""
    config = bundle.training["config"]
    weights = f"int8 with {bundle.levels} levels" if bundle.quantization == "int8" else bundle.quantization
    figures = "\n".join(
        f"| {member} | {name} | {value:.4f} |"
        for member, by_name in bundle.training["figures"].items()
        for name, value in by_name.items()
    )
    relations = "\n".join(f"- `{name}`: {facts['template']}" for name, facts in bundle.relations.items())
    return f"""# {bundle.name}

A cod3s bundle: {bundle.bits}-bit signatures of `{bundle.encoder}`, {bundle.bits_per_token} bits per token, shape
`{bundle.shape}`, layout `{config["layout"]}`, weights in {weights}.

Relations:

{relations}

Trained on the corpus whose manifest has sha256 `{bundle.training["corpus_sha256"]}`; seed {config["seed"]}.
Licence: {bundle.licence or "not stated; ask whoever made the bundle"}.

## Validation (held-out pairs of the same corpus; losses in nats per token, without label smoothing)

| model | figure | value |
|---|---|---|
{figures}

{about.strip()}

## Limits

It writes what its corpus makes likely, which is not always true, kind or sensible. Read what it writes before you
use it.
"""
