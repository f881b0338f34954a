"""What each command says and with which exit code it ends."""
