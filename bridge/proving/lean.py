"""Which theorems speak of the text that Triton compiles of a kernel of the project."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bridge.audit.theorems import listed_theorems, theorem_list
from bridge.ttir import texts
from bridge.ttir.syntax import TtirError
from bridge.ttir.texts import Text

ROOT = Path(__file__).resolve().parents[2]
# The kernels that `Attention.Kernel` is about, and whether sequences are packed in them.
_PROVED = {"forward": False, "varlen": True}


def describe_texts(kernel: str, root: Path = ROOT, classes: Sequence[Text] = texts.TEXTS) -> str:
    """For each class of the kernel's texts, say whether the text compiled here for compute
    capability 9.0 is the committed Lean, and give the ids of `docs/theorems.toml` that speak of it;
    of another kernel, say that there is no theorem. `make verify` checks the proofs themselves."""
    if kernel not in _PROVED:
        return "no theorem is about this kernel's compiled code yet"
    if not (root / texts.FOLDER).is_dir():
        return f"not compared, since there is no folder {texts.FOLDER}"
    if not texts.is_compared():
        return f"not compared: {texts.triton_version()} is none of {', '.join(texts.COMPARED)}"
    theorems = {entry["lean"]: entry["id"] for entry in listed_theorems(theorem_list())}
    packed = _PROVED[kernel]
    return "; ".join(_of_class(text, root, theorems) for text in classes if text.packed == packed)


def _of_class(text: Text, root: Path, theorems: dict[str, str]) -> str:
    ids = [
        one for lean, one in theorems.items() if lean.startswith(f"Attention.Kernel.{text.family}.")
    ]
    path = root / text.path
    try:
        if not path.exists() or path.read_text("utf-8") != texts.texts()[text.path]:
            return f"{text.what}, the compiled text is not {text.path}: no theorem speaks of it"
        others = texts.differing_launches(text)
    except TtirError as error:
        return f"{text.what}, the compiled text has no Lean: {error}"
    found = f"{text.what}, the compiled text is {text.path}, of which {', '.join(ids)} speak"
    return f"{found}, but not that of {', '.join(others)}" if others else found
