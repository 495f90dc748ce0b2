"""Metadata of a wheel beside its `pyproject.toml`: addresses, and its README for an index.

A checkout does not know where it is published. Two variables of the environment say it:

- `ATTENTION_SPEC_REPOSITORY`: the address of the repository, `https://github.com/OWNER/NAME`;
- `ATTENTION_SPEC_REF`: the tag or commit that is built, by default main.

With them the metadata has URLs, and the README's links and images are whole addresses, since an
index shows no other image. Without them the README has no links into the checkout and no images.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY, REF = "ATTENTION_SPEC_REPOSITORY", "ATTENTION_SPEC_REF"
# Code, in which nothing is a link, or a link or image of Markdown to a path, not an address.
_CODE_OR_LINK = re.compile(
    r"(?P<code>^```.*?^```|^ {4}.*?$|`[^`\n]*`)"
    r"|(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?!\w+:|#)(?P<path>[^()#\s]+)(?P<anchor>#[^()\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)


class Addresses(MetadataHookInterface):
    """`[tool.hatch.metadata.hooks.custom]`: the fields `readme` and `urls`. folder: where the
    README of the package lies, from the root of the checkout."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Raises ValueError for an address that is none."""
        repository = os.environ.get(REPOSITORY, "").rstrip("/")
        ref = os.environ.get(REF) or "main"
        text = (Path(self.root) / "README.md").read_text("utf-8")
        folder = self.config.get("folder", ".")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": publish(text, folder, repository, ref),
        }
        if repository:
            metadata["urls"] = urls(repository, ref)


def urls(repository: str, ref: str) -> dict[str, str]:
    """The addresses of the metadata. Raises ValueError for a repository that is no address."""
    if not re.fullmatch(r"https://[^\s/]+/\S+", repository):
        raise ValueError(f"{REPOSITORY} must be https://HOST/OWNER/NAME, not {repository!r}")
    return {
        "Source": repository,
        "Documentation": f"{repository}/blob/{ref}/README.md",
        "Changelog": f"{repository}/blob/{ref}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def publish(text: str, folder: str, repository: str, ref: str) -> str:
    """A README of a folder of the checkout, as an index is to show it."""

    def outside(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        if not repository:
            return "" if found["image"] else found["text"]
        path = posixpath.normpath(posixpath.join(folder, found["path"]))
        kind = "raw" if found["image"] else "blob"
        address = f"{repository}/{kind}/{ref}/{path}{found['anchor'] or ''}"
        return f"{found['image']}[{found['text']}]({address})"

    return _CODE_OR_LINK.sub(outside, text)
