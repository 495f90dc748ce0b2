"""The built wheel, installed where there is neither Lean nor the checkout: `pyimpl` runs with the
packages that it declares, and with the extra `check` the judge, on the vectors that the wheel
carries. Packages that it does not declare are as if they were not there."""

from __future__ import annotations

import ast
import hashlib
import html
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from email.message import Message
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parent.parent


# By hand and in CI: packages, of the registry, that are installed beside the wheel with its
# dependencies into an environment that is empty otherwise. "torch triton" are the newest.
WITH = os.environ.get("WHEEL_WITH", "").split()


def outside_environment() -> dict[str, str]:
    """The variables without those by which the checkout, or its address, might be found."""
    hidden = ("PYTHONPATH", "ATTENTION_SPEC_REPOSITORY")
    return {k: v for k, v in os.environ.items() if k not in hidden}


def run(
    *command: str | Path,
    cwd: Path,
    path: str | None = None,
    refused: Iterable[str] = (),
    status: int = 0,
) -> str:
    """A command's output, both streams where it fails as it should; refused: packages that its
    Python does not import (`REFUSING`)."""
    environment = {**outside_environment(), "REFUSED_PACKAGES": ",".join(refused)}
    if path is not None:
        environment["PATH"] = path
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr if status else done.stdout


def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def plain(name: str) -> str:
    """The name of a distribution, however it is written."""
    return re.split(r"[<>=!~;\[ (]", name)[0].lower().replace("-", "_").replace(".", "_")


def undeclared_packages(wheel: Path, *extras: str) -> set[str]:
    """The installed packages that the wheel with these extras does not bring, by the names that
    they are imported by. Markers other than of extras are taken to hold."""
    wanted, brought = [(one, extras) for one in metadata(wheel).get_all("Requires-Dist", [])], set()
    while wanted:
        text, given = wanted.pop()
        extra = re.search(r"extra == .([\w-]+)", text)
        if extra and extra[1] not in given:
            continue
        name = plain(text)
        if name == "attention_spec":
            more = set(re.findall(r"[\w-]+", text.partition("[")[2].partition("]")[0]))
            wanted += [(one, more) for one in metadata(wheel).get_all("Requires-Dist", [])]
        elif name not in brought:
            brought.add(name)
            with suppress(PackageNotFoundError):
                wanted += [(one, ()) for one in requires(name) or []]
    installed = packages_distributions()
    return {
        module
        for module, names in installed.items()
        if not {plain(name) for name in names} & (brought | {"attention_spec"})
    }


# In the new environment, before anything else runs: these packages are as if they were not there.
REFUSING = """
import os, sys
from importlib.machinery import PathFinder
NAMES = set(os.environ.get("REFUSED_PACKAGES", "").split(","))
class Refusing(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        refused = name.partition(".")[0] in NAMES
        return None if refused else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Refusing
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT, cwd=ROOT)
    (found,) = out.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel. Its dependencies are those of the running environment, put
    on the path by a `.pth` file: from there `.pth` files are not read, so the checkout's editable
    install stays out of it. With WHEEL_WITH they are installed."""
    home = tmp_path_factory.mktemp("home") / "venv"
    run(sys.executable, "-m", "venv", home, cwd=home.parent)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/*/site-packages")
    if WITH:
        run(python, "-m", "pip", "install", *WITH, f"{wheel}[check]", cwd=home)
    else:
        run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=home)
        (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "refusing.py").write_text(REFUSING)
    (site / "refusing.pth").write_text("import refusing\n")
    return python


USED = """
import os, sys
os.environ["TRITON_INTERPRET"] = "1"
import torch, pyimpl
from pyimpl.integrations.sdpa import sdpa_replaced
from pyimpl.modules import MultiHeadAttention
x = torch.randn(1, 2, 3, 4, requires_grad=True)
pyimpl.attention(x, x, x, is_causal=True).sum().backward()
MultiHeadAttention(4, num_heads=2)(x[0])
with sdpa_replaced() as replaced:
    torch.nn.functional.scaled_dot_product_attention(x, x, x)
assert replaced.calls == 1
if sys.platform == "linux":
    with torch.no_grad():
        by_kernel = pyimpl.attention(x, x, x, is_causal=True, backend="triton")
    torch.testing.assert_close(by_kernel, pyimpl.attention(x, x, x, is_causal=True))
print(pyimpl.__version__)
try:
    from bridge import check
except ImportError as error:
    print(error)
"""


@pytest.mark.thorough
def test_pyimpl_runs_with_what_it_declares(wheel: Path, python: Path, tmp_path: Path) -> None:
    """And the judge says which extra it needs."""
    refused = undeclared_packages(wheel)
    assert refused >= {"click", "rich", "msgspec", "pdoc", "pytest", "transformers"}
    assert not refused & {"torch", "triton", "numpy", "pyimpl", "bridge"}
    version, sentence = run(python, "-c", USED, cwd=tmp_path, refused=refused).splitlines()
    assert version == metadata(wheel)["Version"]
    assert "pip install 'attention-spec[check]' brings it" in sentence
    for command in ("attention-check", "bridge"):
        said = run(python.with_name(command), cwd=tmp_path, refused=refused, status=2)
        assert re.fullmatch(r"Error: .* has no package \w+; .*attention-spec\[check\].*\n", said)


def test_what_is_installed_hides_no_lake(python: Path) -> None:
    assert python.with_name("bridge").exists()
    assert not python.with_name("lake").exists()


SOME = ("causal", "gradient", "one-key", "varlen")


@pytest.mark.parametrize(
    ("families", "least"), [(SOME, 50), pytest.param((), 400, marks=pytest.mark.thorough)]
)
def test_it_runs_the_conformance_on_the_packaged_vectors(
    families: tuple[str, ...], least: int, wheel: Path, python: Path, tmp_path: Path
) -> None:
    """On some families, and on all; at least so many vectors pass. With the extra `check`."""
    empty = tmp_path / "bin"
    empty.mkdir()
    output = run(
        python.with_name("attention-check"), "pyimpl-reference", "--dtype", "float32", "--json",
        *(word for family in families for word in ("--family", family)),
        cwd=tmp_path, path=str(empty), refused=undeclared_packages(wheel, "check"),
    )  # fmt: skip
    (result,) = json.loads(output)
    assert result["adapter"] == "pyimpl-reference"
    assert result["ok"] is True
    assert sum(v["status"] == "passed" for v in result["vectors"]) >= least
    assert not any(v["status"] == "failed" for v in result["vectors"])


def test_the_page_of_failures_has_the_sentences_of_the_theorems(
    python: Path, tmp_path: Path
) -> None:
    """A function that is wrong, so that there is a failure to be shown."""
    (tmp_path / "wrong.py").write_text("def zero(query, key, value):\n    return 0 * query\n")
    command = [python, "-m", "bridge", "conform", "wrong.py:zero", "--dtype", "float32"]
    done = subprocess.run(
        [*command, "--vector", "default-scale-000", "--html", "page.html"],
        cwd=tmp_path,
        env=outside_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "<pre>python -m bridge conform wrong.py:zero" in (tmp_path / "page.html").read_text()
    data = tomllib.loads((ROOT / "docs" / "theorems.toml").read_text("utf-8"))
    page = html.unescape((tmp_path / "page.html").read_text("utf-8"))
    assert any(f"{one['id']}</code>: {one['sentence']}" in page for one in data["theorem"])


def test_nothing_of_the_checkout_is_used(python: Path, tmp_path: Path) -> None:
    code = "import bridge, pyimpl; from bridge.vectors import load; print(bridge.__file__, "
    code += "pyimpl.__file__, load.default_directory())"
    output = run(python, "-c", code, cwd=tmp_path)
    assert str(ROOT) not in output.replace(str(python.parents[1]), "")
    assert output.count(str(python.parents[1])) == 3


def test_commands_that_need_the_checkout_say_so(python: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [python, "-m", "bridge", "verify"],
        cwd=tmp_path,
        env=outside_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "needs a checkout" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_says_where_it_is_from_only_where_that_is_known(wheel: Path) -> None:
    """Built in a checkout it has no address, and no link or image that leads nowhere; with one it
    is built in `test_packages.py`."""
    found = metadata(wheel)
    assert found.get_all("Project-URL") is None
    assert "Author" in found
    text = str(found.get_payload())
    assert text.startswith("# Attention, proved and checked\n")
    assert not re.search(r"\]\((?!https?://|#)", text)


def test_it_carries_the_vectors_with_their_index_and_schemas(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        listed = json.loads(archive.read("bridge/vectors/data/index.json"))["families"]
        for family in listed:
            content = archive.read(f"bridge/vectors/data/{family['file']}")
            assert hashlib.sha256(content).hexdigest() == family["sha256"]
    assert {"bridge/vectors/schema.json", "bridge/vectors/index_schema.json"} <= names


def test_what_it_imports_it_declares(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        # Launchers of other packages' kernels import those: whoever asks for a verdict has them. So
        # has who gives a definition of FlashInfer-Bench (decision 0036).
        sources = [
            archive.read(name).decode()
            for name in archive.namelist()
            if name.endswith(".py")
            and not name.startswith(("bridge/proving/launchers/", "bridge/conformance/flashinfer/"))
        ]
        # In the sandbox there is no `bridge`: its modules there are imported by their own names.
        inside = {Path(n).stem for n in archive.namelist() if "/conformance/inside/" in n}
    required = [
        plain(one)
        for one in metadata(wheel).get_all("Requires-Dist", [])
        # An extra's packages are imported where they are used, and a sentence tells of their lack;
        # with watchfiles `bridge watch` sees a checkout.
        if "extra ==" not in one
        or re.search(r"extra == .(check|docs|index|transformers|visualize).", one)
        or plain(one) == "watchfiles"
    ]
    nodes = [node for text in sources for node in ast.walk(ast.parse(text))]
    imported = {a.name.split(".")[0] for n in nodes if isinstance(n, ast.Import) for a in n.names}
    imported |= {
        n.module.split(".")[0] for n in nodes if isinstance(n, ast.ImportFrom) and n.module
    }
    # pytest alone imports the plugin that it has by this package.
    own = {"bridge", "pyimpl", "pytest"} | inside
    foreign = imported - set(sys.stdlib_module_names) - own
    # A package may be imported by another name than it is installed by.
    installed = packages_distributions()
    lacking = {
        name
        for name in foreign
        if not {d.lower().replace("-", "_") for d in installed.get(name, [name])} & set(required)
    }
    assert lacking == set()
