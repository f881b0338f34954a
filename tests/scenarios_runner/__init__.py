"""What is asked of the runner itself, whatever it runs on."""
