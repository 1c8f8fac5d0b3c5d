"""Step times of training runs, from the logs of others."""
