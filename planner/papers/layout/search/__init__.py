"""The search: rules and memory as arrays, replay of the few that the bound leaves."""
