"""What goes out, and what does not: the last check, at most once, and a record of what became of it."""
