"""The published files: the metadata of the wheels, the wheel of the vectors alone, and the files
that GitHub and pre-commit read."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from bridge.checks import ISSUE_FORMS, LINT, checks

ROOT = Path(__file__).resolve().parent.parent
AT = "https://example.org/owner/name"


def by_path(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


metadata = by_path(ROOT / "packages" / "metadata.py")


class TestReadme:
    @pytest.mark.parametrize(
        ("text", "with_address", "without"),
        [
            ("see [it](docs/use.md#a).", f"see [it]({AT}/blob/v1/docs/use.md#a).", "see it."),
            ("![One](docs/x.svg)", f"![One]({AT}/raw/v1/docs/x.svg)", ""),
            ("[a](https://b.org/c) [d](#e)", *["[a](https://b.org/c) [d](#e)"] * 2),
            ("`[a](b)`, [c](d)", f"`[a](b)`, [c]({AT}/blob/v1/d)", "`[a](b)`, c"),
            ("```python\nx[a](b)\n```\n", *["```python\nx[a](b)\n```\n"] * 2),
            ("    x[a](b)\n", *["    x[a](b)\n"] * 2),
        ],
    )  # fmt: skip
    def test_links(self, text: str, with_address: str, without: str) -> None:
        assert metadata.publish(text, ".", AT, "v1") == with_address
        assert metadata.publish(text, ".", "", "v1") == without

    def test_from_a_folder(self) -> None:
        found = metadata.publish("[a](../../docs/b.md)", "packages/vectors", AT, "v1")
        assert found == f"[a]({AT}/blob/v1/docs/b.md)"

    @pytest.mark.parametrize("folder", [".", "packages/vectors"])
    def test_every_address_is_of_a_file(self, folder: str) -> None:
        text = metadata.publish((ROOT / folder / "README.md").read_text("utf-8"), folder, AT, "1")
        found = re.findall(rf"(!?)\[[^\]]*\]\({AT}/(raw|blob)/1/([^)#]+)", text)
        assert all((ROOT / path).exists() for _, _, path in found)
        assert {kind for mark, kind, _ in found if mark} <= {"raw"}
        assert [path for mark, _, path in found if mark] == (
            ["docs/images/one-definition.svg"] if folder == "." else []
        )
        assert len(found) == text.count(f"({AT}/") >= 1
        # Nothing is left that an index cannot follow.
        assert not re.search(r"\]\((?!https?://|#)", text)

    def test_an_address_that_is_none(self) -> None:
        with pytest.raises(ValueError, match="must be https://HOST/OWNER/NAME, not 'owner/name'"):
            metadata.urls("owner/name", "main")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the vectors alone, as the release builds it."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out,
         ROOT / "packages" / "vectors"],
        check=True, capture_output=True,
        env={**os.environ, metadata.REPOSITORY: f"{AT}/", metadata.REF: "v1"},
    )  # fmt: skip
    (found,) = out.glob("attention_spec_vectors-*.whl")
    return found


USED = """
import json, sys
sys.path.insert(0, sys.argv[1])
import attention_vectors
names = attention_vectors.families()
sizes = {name: len(attention_vectors.family(name)["vectors"]) for name in names}
print(json.dumps(sizes))
try:
    attention_vectors.family("causual")
except ValueError as error:
    print(error)
file = attention_vectors.FOLDER / "causal.json"
file.write_bytes(file.read_bytes().replace(b"1", b"2", 1))
try:
    attention_vectors.family("causal")
except ValueError as error:
    print(error)
"""


class TestVectors:
    def test_of_use_without_any_other_package(self, vectors: Path, tmp_path: Path) -> None:
        """With the standard library alone; a name that is not there, and a file that was changed,
        are said in a sentence."""
        with ZipFile(vectors) as archive:
            archive.extractall(tmp_path)
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", USED, tmp_path], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        sizes, unknown, changed = done.stdout.splitlines()
        index = json.loads((ROOT / "tests" / "vectors" / "index.json").read_text("utf-8"))
        assert json.loads(sizes) == {one["family"]: one["vectors"] for one in index["families"]}
        assert unknown.startswith("there is no family 'causual'; there are alibi, ")
        assert changed.endswith("causal.json is not the file that index.json lists")

    def test_the_example_of_its_readme_runs(self, vectors: Path, tmp_path: Path) -> None:
        with ZipFile(vectors) as archive:
            archive.extractall(tmp_path)
        text = (ROOT / "packages" / "vectors" / "README.md").read_text("utf-8")
        (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        code = f"import sys; sys.path.insert(0, sys.argv[1])\n{example}"
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code, tmp_path], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert Path(done.stdout.strip()) == tmp_path / "attention_vectors" / "data"

    def test_what_it_carries_and_says(self, vectors: Path) -> None:
        with ZipFile(vectors) as archive:
            names = {n for n in archive.namelist() if not n.endswith(".json")}
            (said,) = [n for n in names if n.endswith(".dist-info/METADATA")]
            found = Parser().parsestr(archive.read(said).decode())
            schema = archive.read("attention_vectors/schema.json")
        assert schema == (ROOT / "bridge" / "vectors" / "schema.json").read_bytes()
        assert {Path(n).name for n in names} == {
            "__init__.py", "py.typed", "LICENSE", "METADATA", "WHEEL", "RECORD",
        }  # fmt: skip
        assert found.get_all("Requires-Dist") is None
        assert f"Source, {AT}" in found.get_all("Project-URL", [])
        assert f"({AT}/blob/v1/docs/vectors.md)" in found.get_payload()


class TestFilesOfOthers:
    def test_checks_read_every_file(self) -> None:
        """Of the workflows and the forms of issues."""
        words = [word for check in LINT for word in check.command]
        folder = ROOT / ".github"
        there = [*folder.glob("workflows/*"), *folder.glob("ISSUE_TEMPLATE/*")]
        assert {p.relative_to(ROOT).as_posix() for p in there} <= {*words}
        assert len(there) == 2 + len(ISSUE_FORMS) + 1

    def test_the_hooks_of_pre_commit_are_checks(self) -> None:
        text = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
        named = re.findall(r"entry: \.venv/bin/python -m bridge test ([\w -]+)\n", text)
        found = {name for names in named for name in names.split()}
        assert len(named) == text.count("entry: ") == 3
        assert found == {check.name for check in LINT} | {"types"}
        assert found <= {check.name for check in checks()}

    def test_the_release_says_where_it_is(self) -> None:
        text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
        for name in (metadata.REPOSITORY, metadata.REF):
            assert f"{name}: ${{{{ github." in text
