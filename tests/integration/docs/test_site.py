"""The documentation as a site: every page has its place, links and anchors lead somewhere, and it builds strictly."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from scripts import site
from tests.support.pages import PAGES, ROOT

CONFIG = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def _leaves(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for one in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(one)


def test_the_nav_names_every_page_once() -> None:
    pages = [uri for uri in [*site.sources(), *site.api_pages()] if uri.endswith(".md")]
    assert Counter(_leaves(site.expand(CONFIG["nav"], pages))) == Counter(pages)


def test_a_page_that_is_not_there_is_seen() -> None:
    assert site.expand([{"A": ["a/*"]}, "b.md"], ["b.md", "a/z.md", "a/index.md"]) == [
        {"A": ["a/index.md", "a/z.md"]},
        "b.md",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_lead_to_a_heading(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\(([^)#:]*\.md)?#([^)]+)\)", text):
        assert anchor in site.anchors((page.parent / target) if target else page), f"{target}#{anchor}"


@pytest.mark.slow
def test_it_builds_strictly_with_search_and_the_python_reference(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    places = {one["location"].partition("#")[0] for one in found}
    wanted = {"reference/rest.html", "reference/python/strata.html", "adr/0001-generation-and-fence.html"}
    assert wanted | {"index.html", "install.html", "migrating/torchrun.html"} <= places | {"index.html"}
    python = (tmp_path / "reference" / "python" / "strata.html").read_text(encoding="utf-8")
    assert "loads the newest good checkpoint into the parts on every rank" in python
    home = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'data-md-color-scheme="slate"' in home
    assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="?https?:', home) == [], (
        "nothing is loaded from elsewhere"
    )
    assert "no-run:" not in (tmp_path / "quickstart.html").read_text(encoding="utf-8")
