"""Build the site from docs/: `make site` installs the tool and runs this.

The pages are copied to build/pages with the pages of the repository's root that they link to. A link to another file
of the repository becomes plain text there. Navigation follows the folders; a page's title is its first heading. A link
to a page or a heading that does not exist ends the build with an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
PAGES = BUILD / "pages"
PROJECT = ("ARCHITECTURE.md", "GLOSSARY.md", "CONTRIBUTING.md", "CHANGELOG.md")
"""Pages of the repository's root in the site's last chapter."""
CHAPTERS = {
    "tutorials": "Tutorials",
    "how-to": "How-to",
    "explanation": "Explanation",
    "coming-from": "Coming from",
    "symptoms": "Symptoms",
    "reference": "Reference",
    "design": "Design",
    "project": "Project",
}
"""Folders in the order of the site; others follow by name."""
KINDS = {".md", ".svg", ".png", ".jpg"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def staged(source: Path) -> Path | None:
    """Return the place of a repository file among the pages, or None if it is not one of them."""
    inside = source.relative_to(ROOT) if source.is_relative_to(ROOT) else None
    if inside is None or not source.is_file() or source.suffix not in KINDS:
        return None
    if str(inside) in PROJECT:
        return PAGES / "project" / f"{source.stem.lower()}.md"
    if str(inside) == "README.md":
        return PAGES / "index.md"
    return PAGES / inside.relative_to("docs") if inside.parts[0] == "docs" else PAGES / "files" / inside


def move_links(text: str, source: Path, pictures: set[Path]) -> str:
    """Return a page with its links adapted to the places of the pages."""

    def move(link: re.Match[str]) -> str:
        mark, words, target = link.groups()
        if re.match(r"[a-z]+:|#", target):
            return link[0]
        path, _, heading = target.partition("#")
        target_file = (source.parent / path).resolve()
        place = staged(target_file)
        if place is None or (place.is_relative_to(PAGES / "files") and not mark):
            # A link to a missing page of ours stays, so that the build refuses it.
            return link[0] if target_file.is_relative_to(ROOT / "docs") else words
        if mark:
            pictures.add(target_file)
        own_place = staged(source)
        assert own_place is not None
        return f"{mark}[{words}]({os.path.relpath(place, own_place.parent)}{f'#{heading}' if heading else ''})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(move, part) for part in parts)


def copy_pages() -> None:
    """Copy every page, and the pictures that pages show."""
    shutil.rmtree(BUILD / "pages", ignore_errors=True)
    pictures: set[Path] = set()
    index = ROOT / "docs" / "index.md"
    front = index if index.exists() else ROOT / "README.md"
    for source in [*(ROOT / name for name in PROJECT), front, *sorted((ROOT / "docs").rglob("*.md"))]:
        place = staged(source)
        assert place is not None
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(move_links(source.read_text(encoding="utf-8"), source, pictures), encoding="utf-8")
    for picture in pictures:
        place = staged(picture)
        assert place is not None
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, place)


def title(page: Path) -> str:
    """Return a page's first heading, without backticks."""
    match = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1].replace("`", "") if match else page.stem


def navigation() -> list[dict[str, Any]]:
    """Return the pages by chapter."""
    folders = {path.name: path for path in PAGES.iterdir() if path.is_dir() and any(path.glob("*.md"))}
    order = [*(name for name in CHAPTERS if name in folders), *sorted({*folders} - {*CHAPTERS})]
    entries: list[dict[str, Any]] = [{title(page): page.name} for page in sorted(PAGES.glob("*.md"), key=_rank_page)]
    for name in order:
        pages = sorted(folders[name].glob("*.md"), key=_rank_page)
        entries.append({CHAPTERS.get(name, name): [{title(page): f"{name}/{page.name}"} for page in pages]})
    return entries


def _rank_page(page: Path) -> tuple[int, str]:
    """Return a page's sort key: the order of its link in docs/index.md, then the name."""
    name = page.relative_to(PAGES).as_posix()
    at = (PAGES / "index.md").read_text(encoding="utf-8").find(f"({name})")
    return -1 if name == "index.md" else at if at >= 0 else sys.maxsize, name


def main() -> int:
    """Build the site."""
    copy_pages()
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    settings |= {"docs_dir": "pages", "site_dir": "site", "nav": navigation()}
    config = BUILD / "mkdocs.yml"
    config.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    tool = Path(sys.executable).with_name("zensical")
    command = [str(tool), "build", "--clean", "--strict", "-f", str(config)]
    finished = subprocess.run(
        command, cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if finished.returncode:
        output = re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout)
        print(output.partition("Traceback")[0], file=sys.stderr)
    else:
        print(f"the site: {(BUILD / 'site' / 'index.html').relative_to(ROOT)}")
    return finished.returncode


if __name__ == "__main__":
    sys.exit(main())
