"""Documents: README is short, links lead somewhere, and no page is forgotten."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "design")
WITH_LINKS = [*sorted(ROOT.glob("*.md")), ROOT / "llms.txt", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
MOST_WORDS = 900


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Return the anchors that a forge gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Return the links of a page to a file or a heading that is not there."""
    links = []
    for link in LINK.findall(prose(page)):
        name, _, anchor = link.partition("#")
        if "://" in link:
            continue
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            links.append(link)
    return links


def named(page: Path) -> set[Path]:
    """Return the files that a page links to."""
    return {(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(prose(page)) if "://" not in link}


def test_readme_is_read_in_a_few_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("page", WITH_LINKS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_to_nothing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading\n[a](page.md#a-heading) [b](page.md#another) [c](other.md)\n```\n[d](none.md)\n```\n")
    assert broken_links(page) == ["page.md#another", "other.md"]


@pytest.mark.parametrize("contents", ["docs/index.md", "llms.txt"])
def test_every_page_stands_in_the_table_of_contents(contents: str) -> None:
    page = ROOT / contents
    assert [path.name for path in PAGES if path not in {*named(page), page, ROOT / "docs" / "index.md"}] == []


def test_every_file_that_the_architecture_names_is_there() -> None:
    named_files = re.findall(r"`([\w./]+/[\w./]+\.py)`", prose(ROOT / "ARCHITECTURE.md"))
    assert len(named_files) > 10
    assert [name for name in named_files if not (ROOT / name).is_file()] == []
