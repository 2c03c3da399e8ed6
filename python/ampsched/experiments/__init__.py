"""Published experiments, each reproduced by one command."""
