"""What the site needs beside its settings in mkdocs.yml."""

import re


def on_page_content(html: str, **_: object) -> str:
    """Drop the roles of references in docstrings (``:func:`` and the like), which only Sphinx understands."""
    return re.sub(r":(?:func|class|meth|mod|attr):(?=<code>)", "", html)
