"""What is decided. Pure: no I/O, no clock, no randomness, no logging (R-RUN-1)."""
