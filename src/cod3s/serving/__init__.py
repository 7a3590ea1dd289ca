"""What both servers share: the address, the guard in front of the application, error replies and fixed files."""
