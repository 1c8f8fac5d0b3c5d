"""The ``plan`` command: exit codes, errors for people and for programs, streams, and help that costs nothing."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from planner import __version__, api
from planner.cli import COMMANDS, cli
from planner.documents import canonical_bytes
from planner.errors import BadInputError, InfeasibleError, LimitError, Relaxation
from planner.plan import Plan
from planner.printable import printable

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]
Changes = dict[str, Any]


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and subcommand with its words."""
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield (name,), command
        if isinstance(command, click.Group):
            yield from (((name, inner), command.commands[inner]) for inner in command.commands)


EVERY_COMMAND = [pytest.param(words, command, id=" ".join(words)) for words, command in commands()]


@pytest.fixture
def plan_file(problem: dict[str, Any], tmp_path: Path) -> str:
    """A plan of the small problem."""
    path = tmp_path / "plan.json"
    api.dump(api.solve(problem), str(path))
    return str(path)


def tampered(plan_file: str) -> str:
    """The plan with another objective, in a file beside it."""
    document = json.loads(Path(plan_file).read_bytes())
    document["certificate"]["objective"] = 1.0
    path = Path(plan_file).with_name("tampered.json")
    path.write_bytes(canonical_bytes(document))
    return str(path)


# --- help and documentation ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "command"), EVERY_COMMAND)
def test_every_command_has_help_with_an_example_of_itself(
    plan: Run, words: tuple[str, ...], command: click.Command
) -> None:
    short, long = plan(*words, "-h"), plan(*words, "--help")
    assert (short.code, short.err) == (0, "")
    assert short.output == long.output
    assert f"plan {' '.join(words)}" in " ".join(short.out.split("Example:")[1].split())
    assert command.help


@pytest.mark.parametrize(("words", "command"), EVERY_COMMAND)
def test_every_option_says_what_it_does_or_how_it_is_bounded(words: tuple[str, ...], command: click.Command) -> None:
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help or option.show_default or isinstance(option.type, click.Choice), option.name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(re.search(rf"\bplan {name}\b", page.read_text("utf-8")) for page in pages if page.exists())


def test_the_commands_are_listed_with_a_line_each(plan: Run) -> None:
    listed = plan("--help").out
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\w", listed, re.MULTILINE)


def test_help_and_a_check_import_no_solver(plan_file: str) -> None:
    program = f"""
import sys
from planner.cli import COMMANDS, _run
for words in ([], *([name] for name in COMMANDS)):
    assert _run([*words, "--help"], "text", False) == 0
    heavy = {{"ortools", "scipy", "pandas", "pydantic", "numpy", "rich", "yaml", "orjson"}} & set(sys.modules)
    assert not heavy, (words, heavy)
import planner.papers
assert planner.papers.names()
assert not [name for name in sys.modules if name.startswith("planner.papers.")]
assert _run(["check", {plan_file!r}], "text", False) == 0
assert not {{"ortools", "scipy", "pandas", "yaml"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_the_version_names_the_solvers(plan: Run) -> None:
    from importlib.metadata import version

    ran = plan("--version")
    assert ran.code == 0
    assert ran.out.startswith(f"plan {__version__} ")
    assert f"ortools {version('ortools')}" in ran.out


# --- exit codes ---------------------------------------------------------------------------------------------------


def test_0_is_done(plan: Run, problem_file: str) -> None:
    assert plan("solve", problem_file).code == 0


def test_1_is_different(plan: Run, problem_file: str, plan_file: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.json")
    assert plan("solve", problem_file, "--set", "groups.img.options.0.time_s=2", "-o", other).code == 0
    assert plan("diff", plan_file, other).code == 1
    assert plan("diff", plan_file, plan_file).code == 0


def test_3_is_infeasible_with_amounts_and_a_relaxation_that_helps(plan: Run, problem_file: str) -> None:
    ran = plan("solve", problem_file, "--set", "cluster.memory_cap_bytes=20", "--error-format", "json")
    assert (ran.code, ran.out) == (3, "")
    error = ran.error
    assert (error["kind"], error["code"]) == ("infeasible", "memory_single_sequence")
    assert (error["required"], error["available"]) == (35.0, 20.0)
    relaxation = error["smallest_relaxation"]
    assert relaxation["proven"] is True
    helped = plan("solve", problem_file, "--set", f"{relaxation['field']}={relaxation['value']}")
    assert helped.code == 0


def test_an_infeasible_problem_says_how_to_help_itself(plan: Run, problem_file: str) -> None:
    lines = plan("solve", problem_file, "--set", "cluster.memory_cap_bytes=20").err.splitlines()
    assert lines[0].startswith("infeasible: ")
    assert lines[1] == "  required 35 B, available 20 B"
    assert lines[2].startswith("  smallest relaxation: --set cluster.memory_cap_bytes=35 ")


@pytest.mark.parametrize("existing", [b"an older plan", None])
def test_an_infeasible_problem_writes_no_file(
    plan: Run, problem_file: str, tmp_path: Path, existing: bytes | None
) -> None:
    output = tmp_path / "out.json"
    if existing is not None:
        output.write_bytes(existing)
    assert plan("solve", problem_file, "--set", "cluster.memory_cap_bytes=20", "-o", str(output)).code == 3
    assert (output.read_bytes() if output.exists() else None) == existing


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_4_is_a_limit_and_no_plan(plan: Run, problem_file: str, tmp_path: Path) -> None:
    assert plan("solve", problem_file).code == 0  # imports are not to be interrupted
    output = tmp_path / "out.json"
    example = plan("example", "zellige", "demo").output
    before = signal.getsignal(signal.SIGALRM)
    ran = plan("solve", "-", "--time-limit", "0.01", "-o", str(output), "--error-format", "json", stdin=example)
    assert (ran.code, ran.out) == (4, "")
    assert (ran.error["kind"], ran.error["code"]) == ("limit", "time_limit")
    assert not output.exists()
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_time_limit_that_does_not_fire_changes_nothing(plan: Run, problem_file: str) -> None:
    limited = plan("solve", problem_file, "--time-limit", "100")
    assert limited.code == 0
    assert limited.output == plan("solve", problem_file, "--time-limit", "100", "--keep-best").output
    assert limited.output == plan("solve", problem_file).output


def test_5_is_refuted_with_the_violation(plan: Run, plan_file: str) -> None:
    ran = plan("check", plan_file, tampered(plan_file), "--error-format", "json")
    assert ran.code == 5
    assert f"{plan_file}: ok, 4.5 s" in ran.out
    assert (ran.error["kind"], ran.error["code"]) == ("refuted", "objective")
    assert any("tampered.json: objective" in violation for violation in ran.error["violations"])


@pytest.mark.parametrize("command", ["check", "show", "compare"])
def test_a_refuted_plan_is_shown_to_nobody(plan: Run, plan_file: str, command: str) -> None:
    assert plan(command, tampered(plan_file)).code == 5


@pytest.mark.parametrize("command", ["check", "show", "compare"])
def test_a_plan_of_unknown_sequences_is_refuted_and_not_a_crash(plan: Run, plan_file: str, command: str) -> None:
    document = json.loads(Path(plan_file).read_bytes())
    document["solution"]["placements"][0]["sequence_id"] = "stranger"
    document["solution"]["placements"][1]["ranks"] = [10**9]
    Path(plan_file).write_bytes(canonical_bytes(document))
    assert plan(command, plan_file).code == 5


def test_70_is_a_bug_in_one_line_or_with_its_traceback(
    plan: Run, problem_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Plan:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr(api, "solve", fail)
    ran = plan("solve", problem_file)
    assert ran.code == 70
    assert ran.err == "internal: ZeroDivisionError: by zero (a bug of ours; --debug shows the traceback)\n"
    assert plan("solve", problem_file, "--error-format", "json").error["kind"] == "internal"
    debugged = plan("solve", problem_file, "--debug")
    assert debugged.code == 70
    assert "Traceback" in debugged.err


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, click.Abort])
def test_130_is_interrupted(
    plan: Run, problem_file: str, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    def stop(*_: object) -> Plan:
        raise interruption

    monkeypatch.setattr(api, "solve", stop)
    ran = plan("solve", problem_file)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.strip() == "interrupted"


def test_out_of_memory_is_said(plan: Run, problem_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Plan:
        raise MemoryError

    monkeypatch.setattr(api, "solve", fail)
    ran = plan("solve", problem_file)
    assert ran.code == 70
    assert "out of memory" in ran.err


# --- bad input ----------------------------------------------------------------------------------------------------

BAD_SETTINGS: dict[str, tuple[tuple[str, ...], int, str, str | None]] = {
    "no groups": (("groups=[]",), 2, "out_of_range", "groups"),
    "no sequences": (("groups.img.sequence_ids=[]",), 2, "out_of_range", "groups.img.sequence_ids"),
    "no configs": (("configs=[]",), 2, "out_of_range", "configs"),
    "no ranks": (("cluster.num_ranks=0",), 2, "out_of_range", "cluster.num_ranks"),
    "a node not full": (("cluster.gpus_per_node=3",), 2, "out_of_range", "cluster.num_ranks"),
    "zero cost": (("groups.img.options.0.time_s=0",), 2, "out_of_range", "groups.img.options.0.time_s"),
    "negative cost": (("groups.img.options.0.time_s=-1",), 2, "out_of_range", "groups.img.options.0.time_s"),
    "negative memory": (
        ("groups.img.options.0.memory_bytes=-1",), 2, "out_of_range", "groups.img.options.0.memory_bytes",
    ),
    "a number as a string": (('cluster.num_ranks="4"',), 2, "wrong_type", "cluster.num_ranks"),
    "NaN": (("groups.img.options.0.time_s=NaN",), 2, "not_finite", "groups.img.options.0.time_s"),
    "infinite": (("cluster.memory_cap_bytes=1e999",), 2, "not_finite", "cluster.memory_cap_bytes"),
    "a wide integer": (("notes=100000000000000000000",), 2, "out_of_range", "notes"),
    "duplicate sequences": (('groups.img.sequence_ids=["i0", "i0"]',), 2, "duplicate_id", "groups"),
    "duplicate groups": (("groups.img.id=long",), 2, "duplicate_id", "groups"),
    "duplicate configs": (("configs.q2.id=whole",), 2, "duplicate_id", "configs"),
    "an unknown field": (("cluster.num_rank=4",), 2, "unknown_field", "cluster.num_rank"),
    "an unknown config": (("groups.img.options.0.config=q9",), 2, "unknown_field", "groups.img.options"),
    "an unknown policy": (("rank_sets.policy=any",), 2, "out_of_range", "rank_sets.policy"),
    "a degree above the cluster": (("configs.q2.q=8",), 2, "out_of_range", "configs.q2"),
    "another version": (("format_version=2.0",), 2, "unsupported_version", "format_version"),
    "another paper": (("paper=zelige",), 2, "out_of_range", "paper"),
    "no such element": (("groups.imgs.id=x",), 2, "unknown_field", "groups.imgs"),
    "no value": (("groups",), 2, "wrong_type", "--set"),
    "too large for every rank": (
        ("cluster.memory_cap_bytes=20",), 3, "memory_single_sequence", "cluster.memory_cap_bytes",
    ),
    "no rank set": (
        ('rank_sets={"policy": "explicit", "sets": {"q2": []}}', "groups.img.options.0.config=q2"),
        3, "no_rank_set", "groups.img.options",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_SETTINGS)
def test_bad_input_has_its_exit_code_its_code_and_its_place(plan: Run, problem_file: str, what: str) -> None:
    settings, exit_code, code, where = BAD_SETTINGS[what]
    arguments = [word for setting in settings for word in ("--set", setting)]
    ran = plan("solve", problem_file, *arguments, "--error-format", "json")
    assert (ran.code, ran.out) == (exit_code, "")
    assert (ran.error["code"], ran.error["where"]) == (code, where)
    keys = {"kind", "code", "message", "where"}
    amounts = {"required", "available", "smallest_relaxation"}
    assert set(ran.error) == (keys | amounts if exit_code == 3 else keys)

    text = plan("solve", problem_file, *arguments)
    assert (text.code, text.out) == (exit_code, "")
    assert 1 <= len(text.err.splitlines()) <= 5
    assert "Traceback" not in text.err
    assert ran.error["message"] in text.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "missing_field"),
        (("profile",), "missing_field"),
        (("solv",), "unknown_field"),
        (("solve",), "missing_field"),
        (("solve", "no-such-file.json"), "not_json"),
        (("solve", "."), "not_json"),
        (("solve", "-", "--metod", "fast"), "unknown_field"),
        (("solve", "-", "--method", "fst"), "out_of_range"),
        (("solve", "-", "--effort", "0"), "out_of_range"),
        (("solve", "-", "--effort", "nan"), "out_of_range"),
        (("solve", "-", "--effort", "much"), "wrong_type"),
        (("solve", "-", "--gap", "nan"), "out_of_range"),
        (("solve", "-", "--gap", "-1"), "out_of_range"),
        (("solve", "-", "--time-limit", "0"), "out_of_range"),
        (("solve", "-", "--time-limit", "inf"), "out_of_range"),
        (("solve", "-", "--time-limit", "nan"), "out_of_range"),
        (("solve", "-", "--workers", "0"), "out_of_range"),
        (("solve", "-", "--seed", "1.5"), "wrong_type"),
        (("solve", "-", "--extrapolate", "guess"), "out_of_range"),
        (("solve", "-", "--profile", "h100-sxm"), "unknown_field"),
        (("solve", "-", "extra"), "wrong_type"),
        (("example", "zelige"), "out_of_range"),
        (("example", "zellige", "defualt"), "out_of_range"),
        (("check", "no-such-plan.json"), "not_json"),
        (("check", "-"), "missing_field"),
        (("show", "-"), "missing_field"),
        (("diff", "-"), "missing_field"),
        (("schema", "problem"), "wrong_type"),
        (("schema", "problem", "zelige"), "out_of_range"),
        (("schema", "plan", "zellige"), "wrong_type"),
        (("schema", "plans"), "out_of_range"),
        (("profile", "show", "h200-sxn"), "unknown_profile"),
        (("profile", "import", "nccl"), "out_of_range"),
        (("expand", "no-such-file.json"), "not_json"),
    ],
)
def test_a_wrong_command_line_is_bad_input_in_few_lines(
    plan: Run, problem: dict[str, Any], arguments: tuple[str, ...], code: str
) -> None:
    stdin = json.dumps(problem).encode()
    ran = plan(*arguments, "--error-format=json", stdin=stdin)
    assert (ran.code, ran.out) == (2, "")
    assert (ran.error["kind"], ran.error["code"]) == ("bad_input", code)
    text = plan(*arguments, stdin=stdin)
    assert text.code == 2
    assert 1 <= len(text.err.splitlines()) <= 5
    assert "Traceback" not in text.err


@pytest.mark.parametrize(
    "data", [b"", b"{", b"not: [yaml", b"\xff\xfe", b"just words", b"[]", b"3", b"\x00\x01", b"null"]
)
def test_a_problem_that_is_no_document_is_bad_input(plan: Run, data: bytes) -> None:
    ran = plan("solve", "-", stdin=data)
    assert (ran.code, ran.out) == (2, "")
    assert 1 <= len(ran.err.splitlines()) <= 5


def test_heads_that_the_split_does_not_divide_are_refused_or_not_offered(plan: Run) -> None:
    example = plan("example", "zellige", "derived").output
    ran = plan("solve", "-", "--set", "derive.model=wan2.1-1.3", "--error-format", "json", stdin=example)
    assert (ran.code, ran.error["code"]) == (2, "unknown_model")
    # Wan2.1-1.3B has 12 heads: 8 divides them not, so no offered configuration splits them by 8 or 16.
    explicit = plan("expand", "-", stdin=example).document
    assert {12 % config["h"] for config in explicit["configs"]} == {0}


# --- the error object ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_error_format_may_stand_anywhere(plan: Run, place: int) -> None:
    words = ["solve", "none.json"]
    words[place:place] = ["--error-format", "json"]
    assert plan(*words).error["code"] == "not_json"


def test_an_error_object_is_ascii_json_whatever_the_id(plan: Run, problem: dict[str, Any]) -> None:
    problem["groups"][0]["sequence_ids"] = ["é\x1b[31m\x9b", "é\x1b[31m\x9b"]
    ran = plan("solve", "-", "--error-format", "json", stdin=json.dumps(problem).encode())
    assert ran.err.isascii()
    assert "\x1b" not in ran.err
    assert "é\x1b[31m\x9b" in ran.error["message"]


def test_an_amount_without_end_is_null_in_json() -> None:
    error = InfeasibleError("x", code="c", required=float("inf"), available=1.0, relaxation=Relaxation("f", 2.0, True))
    assert json.loads(json.dumps(error.as_object(), allow_nan=False))["required"] is None


@pytest.mark.parametrize(("value", "shown"), [(16.0, "16"), (0.0384, "0.0384"), (1e300, "1e+300")])
def test_a_relaxation_is_shown_as_a_setting_that_can_be_tried(value: float, shown: str) -> None:
    error = InfeasibleError("x", code="c", relaxation=Relaxation("cluster.num_ranks", value, True))
    assert f"--set cluster.num_ranks={shown} " in error.lines()[-1]


def test_kinds_and_exit_codes_are_those_of_the_contract() -> None:
    found = {error.kind: error.exit_code for error in (BadInputError, InfeasibleError, LimitError)}
    assert found == {"bad_input": 2, "infeasible": 3, "limit": 4}


# --- ids do not steer the terminal --------------------------------------------------------------------------------

EVIL = "\x1b[31m\x1b]0;owned\x07\rred\x9b2J"


@pytest.fixture
def evil_problem(problem: dict[str, Any]) -> dict[str, Any]:
    problem["groups"][1]["id"] = EVIL
    problem["groups"][1]["sequence_ids"] = [EVIL]
    for holder in (problem["configs"][1], problem["groups"][1]["options"][1]):
        holder["id" if "id" in holder else "config"] = EVIL
    return problem


def assert_harmless(text: str) -> None:
    assert all(character.isprintable() or character == "\n" for character in text), repr(text)
    assert "red" in text


def test_printable_keeps_text_and_replaces_controls() -> None:
    assert printable("rank 0 — 界 é") == "rank 0 — 界 é"
    assert printable("a\x1b[31m\n\u202e\ud800") == "a\ufffd[31m\ufffd\ufffd\ufffd"


def test_escape_characters_of_ids_do_not_reach_the_terminal(
    plan: Run, evil_problem: dict[str, Any], tmp_path: Path
) -> None:
    stdin = json.dumps(evil_problem).encode()
    made, other = str(tmp_path / "made.json"), str(tmp_path / "other.json")
    assert plan("solve", "-", "-o", made, stdin=stdin).code == 0
    assert_harmless(plan("show", made).out)
    settings = ("--set", f"groups.{EVIL}.options.0.time_s=0.5")
    assert plan("solve", "-", "-o", other, *settings, stdin=stdin).code == 0
    for form in ("text", "markdown"):
        assert_harmless(plan("diff", made, other, "--format", form).out)
    infeasible = plan("solve", "-", "--set", "cluster.memory_cap_bytes=20", stdin=stdin)
    assert infeasible.code == 3
    assert_harmless(infeasible.err)
    bad = plan("solve", "-", "--set", f"groups.{EVIL}.options.0.time_s=0", stdin=stdin)
    assert bad.code == 2
    assert_harmless(bad.err)
    Path(made).write_bytes(Path(made).read_bytes().replace(b'"position": 0', b'"position": 1'))
    refuted = plan("check", made)
    assert refuted.code == 5
    assert all(character.isprintable() or character == "\n" for character in refuted.err)


# --- streams and files --------------------------------------------------------------------------------------------


def test_without_output_the_plan_and_nothing_else_is_on_standard_output(plan: Run, problem_file: str) -> None:
    ran = plan("solve", problem_file)
    assert ran.output == canonical_bytes(ran.document)
    assert ran.err == ""
    assert plan("solve", problem_file, "-o", "-").output == ran.output


def test_timings_go_to_standard_error(plan: Run, problem_file: str) -> None:
    timed = plan("solve", problem_file, "--timings")
    assert timed.output == plan("solve", problem_file).output
    assert [line.split()[0] for line in timed.err.splitlines()] == ["solve", "check", "certify"]


@pytest.mark.parametrize("example", ["default", "derived", "demo"])
def test_with_output_a_summary_of_at_most_15_lines_is_printed(plan: Run, tmp_path: Path, example: str) -> None:
    output = str(tmp_path / "plan.json")
    ran = plan("solve", "-", "-o", output, stdin=plan("example", "zellige", example).output)
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert 4 <= len(lines) <= 15
    assert lines[-1] == f"wrote {output}"
    assert plan("check", output).code == 0


def test_a_summary_may_be_json(plan: Run, problem_file: str, tmp_path: Path) -> None:
    summary = plan("solve", problem_file, "-o", str(tmp_path / "p.json"), "--format", "json").document
    assert summary["certificate"]["objective"] == 4.5
    assert summary["paper"] == "zellige"


@pytest.mark.parametrize("command", ["solve", "expand"])
@pytest.mark.parametrize("output", ["no/such/folder/out.json", ".", "/dev/full"])
def test_an_output_that_cannot_be_written_is_bad_input(plan: Run, problem_file: str, command: str, output: str) -> None:
    ran = plan(command, problem_file, "-o", output, "--error-format", "json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.error["message"].startswith(f"cannot write {output}")


def test_a_full_standard_output_is_bad_input() -> None:
    line = f"{sys.executable} -m planner example zellige > /dev/full"
    ran = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "bad input: cannot write to standard output: No space left on device\n")


def test_a_reader_that_leaves_is_no_error() -> None:
    line = f"{sys.executable} -m planner schema problem zellige | true; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("0\n", "")


def test_closed_streams_are_bad_input() -> None:
    line = f"{sys.executable} -m planner solve - <&-; echo $?; {sys.executable} -m planner papers >&-; echo $?"
    ran = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout == "2\n2\n"
    assert ran.stderr == "bad input: standard input is closed\nbad input: standard output is closed\n"


def test_an_ascii_terminal_is_served(plan_file: str) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "planner", "show", plan_file]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout.isascii()
    assert b"###" in ran.stdout


def on_a_terminal(arguments: list[str], **environment: str) -> str:
    """What a command prints on a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    with subprocess.Popen(
        [sys.executable, "-m", "planner", *arguments],
        cwd=ROOT, env=clean | {"TERM": "xterm", "COLUMNS": "100"} | environment,
        stdin=theirs, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        printed = b""
        try:
            while block := os.read(ours, 65536):
                printed += block
        except OSError:  # Linux: the other side is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    return printed.decode()


COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]m")


def test_colours_are_for_terminals_that_want_them(plan: Run, plan_file: str) -> None:
    assert COLOUR.search(on_a_terminal(["show", plan_file]))
    assert not COLOUR.search(on_a_terminal(["show", plan_file], NO_COLOR="1"))
    assert "\x1b" not in plan("show", plan_file).out


def test_an_interrupted_process_leaves_no_file_and_exits_with_130(tmp_path: Path) -> None:
    (tmp_path / "fifo").touch()
    reading = subprocess.Popen(
        [sys.executable, "-m", "planner", "solve", "-", "-o", str(tmp_path / "out.json")],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with reading:
        deadline = time.monotonic() + 30
        while not _waits_for_input(reading.pid) and time.monotonic() < deadline:
            assert reading.poll() is None
            time.sleep(0.02)
        reading.send_signal(signal.SIGINT)
        _, err = reading.communicate()
    assert reading.returncode == 130
    assert err.strip() == "interrupted"
    assert not (tmp_path / "out.json").exists()


def _waits_for_input(process: int) -> bool:
    """Whether the process is blocked on reading a pipe (Linux), after its start."""
    try:
        return "pipe_read" in Path(f"/proc/{process}/wchan").read_text() or _syscall_is_read_of_0(process)
    except OSError:
        pytest.skip("no /proc here")


def _syscall_is_read_of_0(process: int) -> bool:
    return Path(f"/proc/{process}/syscall").read_text().split()[:2] == ["0", "0x0"]


# --- commands -----------------------------------------------------------------------------------------------------


def test_the_demo_needs_no_arguments_and_says_what_is_next(
    plan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = plan("demo")
    assert (ran.code, ran.err) == (0, "")
    assert "measured" in ran.out
    assert "next: plan check plan.json" in ran.out
    assert plan("check", "plan.json").code == 0
    assert plan("demo").output == ran.output, "a second demo finds its own plan"
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]
    Path("plan.json").write_text("{}")
    assert plan("demo").code == 2
    assert Path("plan.json").read_text() == "{}"
    assert plan("demo", "--force").code == 0


def test_the_demo_refuses_a_folder_it_cannot_make(plan: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "plan.json").mkdir(parents=True)
    for out in ("file", "folder"):
        ran = plan("demo", "--out", str(tmp_path / out))
        assert (ran.code, ran.out) == (2, "")


def test_ids_may_be_integers(plan: Run, problem: dict[str, Any]) -> None:
    problem["groups"][0]["id"], problem["groups"][0]["sequence_ids"] = 7, [1, 2, 3]
    problem["configs"][1]["id"] = problem["groups"][1]["options"][1]["config"] = 2
    with_integers = plan("solve", "-", stdin=json.dumps(problem).encode())
    problem["groups"][0]["id"], problem["groups"][0]["sequence_ids"] = "7", ["1", "2", "3"]
    problem["configs"][1]["id"] = problem["groups"][1]["options"][1]["config"] = "2"
    assert with_integers.code == 0
    assert with_integers.output == plan("solve", "-", stdin=json.dumps(problem).encode()).output
    bad = plan("solve", "-", "--set", "groups.7.options.0.time_s=0", "--error-format", "json",
               stdin=json.dumps(problem).encode())  # fmt: skip
    assert bad.error["where"] == "groups.7.options.0.time_s"


def test_set_changes_nested_fields_in_order(plan: Run, problem_file: str) -> None:
    made = plan("solve", problem_file, "--set", "groups.img.options.0.time_s=9", "--set",
                "groups.img.options.0.time_s=2.5", "--set", "groups.img.sequence_ids=only").document  # fmt: skip
    (images,) = (group for group in made["problem"]["groups"] if group["id"] == "img")
    assert images["options"][0]["time_s"] == 2.5
    assert images["sequence_ids"] == ["only"]


def test_set_reaches_into_a_derived_problem(plan: Run) -> None:
    example = plan("example", "zellige", "derived").output
    made = plan("solve", "-", "--set", "derive.cluster.num_ranks=8", "--profile", "h100-sxm", stdin=example).document
    assert made["problem"]["cluster"]["num_ranks"] == 8
    assert made["inputs"]["profile"] == "h100-sxm"


def test_refusing_to_extrapolate_names_what_is_outside(plan: Run) -> None:
    example = plan("example", "zellige", "derived").output
    ran = plan("solve", "-", "--extrapolate", "refuse", "--error-format", "json", stdin=example)
    assert (ran.code, ran.error["code"]) == (2, "outside_measured_range")


def test_expand_prints_an_explicit_problem_that_expands_to_itself(plan: Run) -> None:
    explicit = plan("expand", "-", stdin=plan("example", "zellige", "derived").output)
    assert explicit.code == 0
    assert "derive" not in explicit.document
    assert all("sources" in option for group in explicit.document["groups"] for option in group["options"])
    assert plan("expand", "-", stdin=explicit.output).output == explicit.output


def test_compare_puts_the_plan_beside_every_baseline(plan: Run, problem_file: str, plan_file: str) -> None:
    ran = plan("compare", problem_file, "--format", "json")
    names = [baseline["name"] for baseline in ran.document["baselines"]]
    assert names == ["pure_dp", "pure_cp", "homogeneous_d", "best_disjoint", "knapformer", "hybrid_cp"]
    assert ran.output == plan("compare", plan_file, "--format", "json").output
    text = plan("compare", problem_file).out
    assert all(name in text for name in names)
    for baseline in ran.document["baselines"]:
        if baseline["feasible"]:
            assert baseline["ratio"] == pytest.approx(baseline["objective"] / 4.5)
            assert baseline["ratio"] >= 1


def test_show_draws_every_rank(plan: Run, plan_file: str) -> None:
    text = plan("show", plan_file).out
    bars = re.findall(r"^ *rank (\d+) ([█▓ ]+)\|", text, re.MULTILINE)
    assert [rank for rank, _ in bars] == ["0", "1", "2", "3"]
    # Two ranks share "long" until the end of the step, one has the three images; the fourth has nothing to do.
    assert sorted(len(bar.split()) for _, bar in bars) == [0, 1, 1, 1]
    assert max(map(len, text.splitlines())) <= 120
    assert plan("show", plan_file, "--format", "json").document["metrics"]["makespan_s"] == 4.5


def test_check_reports_in_json(plan: Run, plan_file: str) -> None:
    good = plan("check", plan_file, "--format", "json")
    assert good.code == 0
    assert [(entry["ok"], entry["objective"], entry["violations"]) for entry in good.document] == [(True, 4.5, [])]
    bad = plan("check", plan_file, tampered(plan_file), "--format", "json")
    assert bad.code == 5
    assert [entry["ok"] for entry in bad.document] == [True, False]
    assert {violation["code"] for violation in bad.document[1]["violations"]} >= {"objective"}


def test_a_plan_is_checked_from_standard_input(plan: Run, plan_file: str) -> None:
    assert plan("check", "-", stdin=Path(plan_file).read_bytes()).code == 0


@pytest.mark.parametrize(
    ("words", "identity"),
    [
        (("problem", "zellige"), "urn:girih:schema:problem:zellige:1.0"),
        (("plan",), "urn:girih:schema:plan:1.0"),
        (("profile",), None),
    ],
)
def test_schemas_name_their_dialect_and_themselves(plan: Run, words: tuple[str, ...], identity: str | None) -> None:
    schema = plan("schema", *words).document
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"]
    assert identity is None or schema["$id"] == identity
    assert schema["title"] not in ("Envelope", "ZelligeProblem")
    references = set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(schema)))
    assert references <= set(schema["$defs"])


def test_papers_and_profiles_are_listed_for_people_and_programs(plan: Run) -> None:
    assert "arXiv 2608.01150v1" in plan("papers").out
    listed = plan("papers", "--format", "json").document
    assert {paper["examples"][0] for paper in listed} == {"default"}
    names = {row["name"] for row in plan("profile", "list", "--format", "json").document}
    assert {"a100-sxm", "b200-sxm", "h100-sxm", "h200-sxm", "l40s"} <= names
    text = plan("profile", "list").out
    assert all(name in text for name in names)


def test_a_profile_is_shown_with_its_units_and_provenance(plan: Run) -> None:
    text = plan("profile", "show", "h200-sxm").out
    assert "source: aiconfigurator-core" in text
    assert not set("{[") & set(text)  # words, not a dump
    assert "seconds" in text
    shown = plan("profile", "show", "h200-sxm", "--format", "json").document
    assert shown["tables"]
    assert len(shown["sha256"]) == 64


def test_the_library_solves_a_path_relative_to_its_folder(
    plan: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = plan("example", "zellige", "derived").document
    document["derive"]["batch"] = {"recipe": {"seed": 1, "parts": [
        {"table": "./mine.json", "media": "image", "tokens": 100000}]}}  # fmt: skip
    (tmp_path / "problem.json").write_bytes(canonical_bytes(document))
    monkeypatch.chdir("/")
    by_library: object = None
    try:
        api.solve(str(tmp_path / "problem.json"))
    except BadInputError as error:
        by_library = error.as_object()
    by_command = plan("solve", str(tmp_path / "problem.json"), "--error-format", "json").error
    assert by_library == by_command
    assert "mine.json" in by_command["message"]
