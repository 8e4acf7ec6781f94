"""The documentation as a site: the hooks of mkdocs.yml, for `make docs`.

Pages at the root, and whatever a page links to, join those in docs. The Python reference is made from the docstrings.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["anchors", "api_pages", "expand", "links", "on_config", "on_files", "on_page_markdown", "sources", "title"]

ROOT = Path(__file__).resolve().parent.parent
API = (
    "strata.checkpoint",
    "strata.data",
    "strata.integrations.accelerate",
    "strata.integrations.dcp",
    "strata.integrations.huggingface",
    "strata.integrations.jax",
    "strata.integrations.keras",
    "strata.integrations.lightning",
    "strata.integrations.tensorflow",
    "strata.integrations.torch",
    "strata.integrations.weights",
    "strata.wandb",
    "strata.errors",
)
_FENCES = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


@cache
def sources() -> dict[str, Path]:
    """Every file of the site by its place there; a folder stands for a list of its pages."""
    found: dict[str, Path] = {}
    waiting = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    while waiting:
        path = waiting.pop()
        if path.is_dir() and (path / "README.md").exists():  # its own page stands for it
            waiting += [one for one in path.glob("*.md") if one not in found.values()]
            continue
        if found.setdefault(_place(path), path) != path:
            continue
        inside = path.glob("*.md") if path.is_dir() else links(path)
        waiting += [one for one in inside if one.exists() and one not in found.values()]
    return dict(sorted(found.items()))


def links(page: Path) -> list[Path]:
    """The files and folders that a page links to."""
    if page.suffix != ".md":
        return []
    text = _FENCES.sub("", page.read_text(encoding="utf-8"))
    return [(page.parent / found[2]).resolve() for found in _LINK.finditer(text)]


def title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def anchors(page: Path) -> set[str]:
    """The names of its headings, as the site and GitHub both make them."""
    text = _FENCES.sub("", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


def api_pages() -> dict[str, str]:
    """The Python reference: the face of the package by its names, other modules as they are."""
    import strata

    elsewhere = [f"[`{name}`]({home}.md)" for name, home in strata._HOMES.items() if home in API]
    here = [f"::: {home}.{name}" for name, home in strata._HOMES.items() if home not in API]
    face = "\n\n".join(["# strata", f"And {', '.join(sorted(elsewhere))}.", *sorted(here)])
    pages = {"reference/python/strata.md": face}
    for module in API:
        pages[f"reference/python/{module}.md"] = f"# {module}\n\n::: {module}\n"
    return pages


def expand(nav: Any, pages: list[str]) -> Any:
    """The nav with `folder/*` replaced by the folder's pages that it does not name itself."""
    named = set(_named(nav))
    return _expanded(nav, [page for page in pages if page not in named])


def on_config(config: Any) -> Any:
    config["nav"] = expand(config["nav"], [*sources(), *api_pages()])
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for uri, path in sources().items():
        if path.is_dir():
            files.append(File.generated(config, uri, content=_list_of(path)))
        elif files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    for uri, text in api_pages().items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Without the marks of code blocks, which are for tests, and with links as they lead inside the site."""
    here = page.file.src_uri
    source = sources().get(here)
    if source is None or source.is_dir():
        return markdown

    def placed(found: re.Match[str]) -> str:
        target = (source.parent / found[2]).resolve()
        if not target.exists():
            return found[0]  # mkdocs names it
        where = posixpath.relpath(_place(target), posixpath.dirname(here) or ".")
        return f"{found[1]}{where}{found[3] or ''}{found[4]}"

    parts = _FENCES.split(markdown)
    parts[::2] = [_LINK.sub(placed, text) for text in parts[::2]]
    parts[1::2] = [re.sub(r"\A```(\w+) .*", r"```\1", fence) for fence in parts[1::2]]
    return "".join(parts)


def _place(path: Path) -> str:
    """Where a file of the repository is in the site."""
    if path.is_dir():
        own = path / "README.md"
        return _place(own) if own.exists() else f"{_place(path / 'index.md')}"
    inside = path.relative_to(ROOT)
    if inside.parts[0] == "docs":
        return inside.relative_to("docs").as_posix()
    if len(inside.parts) == 1:
        return "index.md" if inside.name == "README.md" else inside.name.lower()
    return inside.as_posix()


def _list_of(folder: Path) -> str:
    pages = sorted(folder.glob("*.md"))
    return f"# {folder.name}\n\n" + "".join(f"- [{title(page)}]({page.name})\n" for page in pages)


def _named(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for one in nav.values() if isinstance(nav, Mapping) else nav:
            yield from _named(one)


def _expanded(nav: Any, pages: list[str]) -> Any:
    if isinstance(nav, Mapping):
        return {name: _expanded(one, pages) for name, one in nav.items()}
    if isinstance(nav, str):
        return nav
    return [one for entry in nav for one in _entries(entry, pages)]


def _entries(entry: Any, pages: list[str]) -> list[Any]:
    if not isinstance(entry, str) or not entry.endswith("/*"):
        return [_expanded(entry, pages)]
    folder = posixpath.dirname(entry)
    inside = [page for page in pages if posixpath.dirname(page) == folder and page.endswith(".md")]
    return sorted(inside, key=lambda page: (not page.endswith("/index.md"), page))
