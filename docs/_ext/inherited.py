"""References in the docstrings of adapters, such as ``malt.torch``, to what they inherit.

The docstring of a subclass of `malt.Vector` refers to `sync`, or to `Update`, which Sphinx
looks for in the subclass's own module alone.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.TextElement) -> nodes.Node | None:
    """Look in `malt` and in `malt.Vector` for what was not found."""
    if node.get("refdomain") != "py" or not str(node.get("py:module")).startswith("malt."):
        return None
    domain = env.get_domain("py")
    for prefix in ("malt", "malt.Vector"):
        target = f"{prefix}.{node['reftarget']}"
        found = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, shown)
        if found is not None:
            return found
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the look-up known."""
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True}
