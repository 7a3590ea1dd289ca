"""What every server here shares: the address, security headers, files by fixed names, the shape of errors."""
