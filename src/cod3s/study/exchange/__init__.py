"""Exchange a study with other annotation platforms."""
