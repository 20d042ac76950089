"""Text on a page that a command writes when the page is built.

    ```{produced} malt graph halton -n 8
    ```

shows the command and what it printed. With ``:as: markdown`` what it printed becomes
part of the page, without the command. The command runs in the root of the checkout, with the
programs of the environment that builds the documentation first on its path; one that
fails, fails the build.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]


class Produced(SphinxDirective):
    """See the module."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[Any] = {"as": lambda text: directives.choice(text, ("text", "markdown"))}

    def run(self) -> list[nodes.Node]:
        """Return what goes onto the page."""
        self.env.note_reread()  # what the command prints may have changed though the page has not
        command = self.arguments[0]
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            shlex.split(command),
            cwd=ROOT,
            env={**os.environ, "PATH": path, "COLUMNS": "88", "PYTHONWARNINGS": "error"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise self.error(f"{command} ended with {done.returncode}: {done.stderr or done.stdout}")
        if self.options.get("as") == "markdown":
            return self.parse_text_to_nodes(done.stdout, allow_section_headings=True)
        shown = nodes.literal_block(text := f"$ {command}\n{done.stdout}", text, language="console")
        return [shown]


def setup(app: Sphinx) -> dict[str, int]:
    """Make the directive known."""
    app.add_directive("produced", Produced)
    return {"parallel_read_safe": True, "env_version": 1}
