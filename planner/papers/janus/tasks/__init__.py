"""The forms of the problem, one a task; ``planner.papers.janus.problem`` is their door."""
