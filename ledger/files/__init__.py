"""Files: settings, files that a person names, and private or content-addressed files of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_names

if TYPE_CHECKING:
    from .given_file import (
        check_given as check_given,
        open_given as open_given,
        read_given as read_given,
        read_given_text as read_given_text,
    )
    from .objects import (
        PUBLIC_FILE_MODE as PUBLIC_FILE_MODE,
        sync_folder as sync_folder,
        write_whole as write_whole,
    )
    from .private import make_file as make_file, make_folder as make_folder
    from .settings import mistakes_error as mistakes_error, parse_settings as parse_settings
    from .yaml_text import QuotingDumper as QuotingDumper, parse_text as parse_text, read_text as read_text
else:
    __all__, __getattr__ = lazy_names(
        __name__,
        {
            "given_file": "check_given open_given read_given read_given_text",
            "objects": "PUBLIC_FILE_MODE sync_folder write_whole",
            "private": "make_file make_folder",
            "settings": "mistakes_error parse_settings",
            "yaml_text": "QuotingDumper parse_text read_text",
        },
    )
