"""``plan profile``: one command a file."""
