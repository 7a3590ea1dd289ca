"""What both servers share: the address, the guard, error replies, fixed files, and how they start and stop."""
