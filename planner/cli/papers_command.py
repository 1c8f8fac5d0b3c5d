"""``plan papers``: the formulations."""

from __future__ import annotations

import click


@click.command("papers", epilog="Example: plan papers --format json")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Form of the output.")
def command(form: str) -> None:
    """List the formulations: name, decision, citation, methods, exports."""
    from planner import console, papers

    known = [papers.get(name) for name in papers.names()]
    if form == "json":
        from planner.documents import canonical_bytes

        rows = [
            {
                "name": paper.name,
                "title": paper.title,
                "decision": paper.decision,
                "citation": paper.citation,
                "methods": list(paper.methods),
                "examples": papers.examples(paper.name),
                "exports": list(paper.exports),
            }
            for paper in known
        ]
        click.echo(canonical_bytes(rows), nl=False)
        return
    for paper in known:
        console.say(f"{paper.name}: {paper.title}")
        console.say(f"  decides   {paper.decision}")
        console.say(f"  source    {paper.citation}")
        console.say(f"  methods   {', '.join(paper.methods)}")
        console.say(f"  examples  {', '.join(papers.examples(paper.name))}")
        console.say(f"  exports   {', '.join(paper.exports) or 'none yet'}")
