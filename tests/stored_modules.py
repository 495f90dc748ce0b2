"""A stored module that is another than its text: only a kernel that checks proofs again sees it."""

from __future__ import annotations

from bridge.toolchain.embedded import EmbeddedLean


def store_another(lean: EmbeddedLean, module: str, old: str, new: str) -> None:
    """Store a module as if its text had `new` for `old`, as a build would that missed a change: the
    text and the record stay. The modules that need it are not built again."""
    source = lean.root.joinpath(*module.split(".")).with_suffix(".lean")
    text, record = source.read_text("utf-8"), lean.store.record.read_text("utf-8")
    assert old in text
    source.write_text(text.replace(old, new), "utf-8")
    assert lean.build([module]).ok
    source.write_text(text, "utf-8")
    lean.store.record.write_text(record, "utf-8")
