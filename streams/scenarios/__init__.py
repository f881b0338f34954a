"""What an executable example is: scenario files, how they are read, run and judged (contract section 8)."""
