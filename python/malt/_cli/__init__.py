"""The command ``malt``: one module per sub-command, each loaded only when it is called."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after ``malt``; those of this process by default.

    Returns
    -------
    int
        The exit code: 2 for a command line that is wrong, 130 after Ctrl-C.
    """
    try:
        from malt._cli import command  # here, since Ctrl-C may come while it is loaded

        return command.main(argv)
    except KeyboardInterrupt:
        return 130
