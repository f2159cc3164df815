"""Results for readers: in the terminal, and as JSON. Nothing here computes."""
