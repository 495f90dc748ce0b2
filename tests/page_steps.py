"""Pages that a reader follows: their files, patches, commands and output, in order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bridge import limits
from bridge.limits import Limit

# Of one command; the longest builds Lean and audits it.
LIMIT = Limit(10_000, 1800)
_FENCE, _COMMAND = "```", "    "
# Commits and stashes need a name.
_READER = {
    f"GIT_{role}_{what}": given
    for role in ("AUTHOR", "COMMITTER")
    for what, given in (("NAME", "reader"), ("EMAIL", "reader@example.org"))
}
_FILE, _FAILS = re.compile(r"`([^`]+)`:$"), re.compile(r"\bfails\b")


@dataclass(frozen=True)
class Step:
    """kind: `file` and `append`, with the path in `name`; `patch`; `command`, which
    `fails` if the line before it says so; `output`, of the command before it."""

    kind: str
    text: str
    name: str = ""
    fails: bool = False


def steps(page: str) -> list[Step]:
    """The steps of the page, in order, with the output that it shows."""
    found: list[Step] = []
    said = ""
    lines = iter(page.splitlines())
    for line in lines:
        if line.startswith(_FENCE):
            text = "".join(f"{inside}\n" for inside in iter(lambda: next(lines), _FENCE))
            found.append(_block(line.removeprefix(_FENCE), text, said))
            said = ""
        elif line.startswith(_COMMAND):
            found.append(Step("command", line.strip(), fails=bool(_FAILS.search(said))))
        elif line:
            said = line
    return found


def _block(language: str, text: str, said: str) -> Step:
    if language in ("", "diff"):
        return Step("patch" if language else "output", text)
    named = _FILE.search(said)
    assert named, f"no file is named before a block of {language}: {said}"
    return Step("append" if "At the end of" in said else "file", text, named[1])


def squeeze(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def run(command: str, folder: Path, given: str = "") -> tuple[int, str]:
    """Exit status and output, standard error included."""
    environment = {**os.environ, **_READER, "PYTHONPATH": str(folder), "COLUMNS": "120"}
    done = limits.run(
        command, LIMIT, input=given, merged=True, shell=True, cwd=folder, env=environment
    )
    return done.returncode, done.stdout


def follow(
    page: Iterable[Step], folder: Path, run_command: Callable[[str, Path], tuple[int, str]] = run
) -> None:
    """Do all of it there; a result that differs from the page is an AssertionError."""
    output = ""
    for step in page:
        path = folder / step.name
        match step.kind:
            case "file":
                assert not path.exists(), f"{step.name} is there already"
                path.write_text(step.text, "utf-8")
            case "append":
                path.write_text(path.read_text("utf-8") + step.text, "utf-8")
            case "patch":
                status, output = run("git apply -", folder, step.text)
                assert status == 0, f"{output}\n{step.text}"
            case "command":
                status, output = run_command(step.text, folder)
                assert (status != 0) == step.fails, f"{step.text}: {status}\n{output}"
            case "output":
                # A line that is cut in the page ends with an ellipsis.
                for shown in step.text.splitlines():
                    part = squeeze(shown.removesuffix("…"))
                    assert part in squeeze(output), f"{shown}\n\nis not in\n\n{output}"
