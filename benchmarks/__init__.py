"""What Turngate is measured by; docs/benchmarks.md holds the results and says how they were made."""
