"""The prose of the pages, in `text/`, with {names} where computed parts belong."""

import tomllib
from importlib import resources

FOLDER = resources.files("reproduction.pages").joinpath("text")


def filled(page: str, **parts: object) -> str:
    """The text of a page or chapter with its parts, without a line break at the end."""
    text = FOLDER.joinpath(f"{page}.md").read_text(encoding="utf-8")
    return text.rstrip("\n").format(**parts)


def read_toml(name: str) -> dict:
    return tomllib.loads(FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8"))
