"""The extension ``malt._malt``: cffi's view of ``capi/malt.h``.

The header is the only place where the C interface is written down: what cffi
gets to read is the header without what only a C preprocessor understands.
The compiler then checks that reading against the header itself.

Python adds forms of the calls that training loops make most. They return what the
others store, or a status below 0. Each has a second form that takes nothing but the
object, since a call with one argument needs no tuple: its weight is 1, its timeout
malt_python_patience. Python also adds the functions that malt_look_up,
malt_on_long_wait and malt_on_death call.
"""

from __future__ import annotations

import re
from pathlib import Path

from cffi import FFI

ROOT = Path(__file__).resolve().parent.parent


def declarations(header: str) -> str:
    """Return the C declarations of ``header``, which uses the preprocessor for little.

    Constants that are plain numbers are kept; the parts for C++, include guards
    and includes are left out. Anything else is refused rather than misread.
    """
    kept: list[str] = []
    cplusplus = False
    for line in re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL).splitlines():
        directive = line.strip()
        if directive == "#ifdef __cplusplus":
            cplusplus = True
        elif cplusplus:
            cplusplus = directive != "#endif"
        elif re.fullmatch(r"#define\s+\w+\s+\d+", directive) or not directive.startswith("#"):
            kept.append(line)
        elif not re.match(r"#(ifndef \w+|define \w+|include <\w+\.h>|endif)$", directive):
            raise ValueError(f"malt.h: cffi cannot be told about {directive!r}: teach ffi_build.py to read it")
    return "\n".join(kept)


SHORT = {
    "void malt_python_patience(int64_t ms)": "patience = ms;",
    "int64_t malt_python_sync_as(malt_handle v, double weight, int64_t timeout_ms)": """
        uint32_t n;
        malt_status status = malt_vector_sync(v, weight, timeout_ms, &n);
        return status == MALT_OK ? (int64_t)n : status;
    """,
    "int64_t malt_python_gather_as(malt_handle v, int64_t timeout_ms)": """
        uint32_t n;
        malt_status status = malt_vector_gather(v, NULL, timeout_ms, &n);
        return status == MALT_OK ? (int64_t)n : status;
    """,
    "int64_t malt_python_scatter_as(malt_handle v, double weight, int64_t timeout_ms)": """
        uint64_t n;
        malt_status status = malt_vector_scatter(v, NULL, 0, weight, timeout_ms, &n);
        return status == MALT_OK ? (int64_t)n : status;
    """,
    "int64_t malt_python_sync(malt_handle v)": "return malt_python_sync_as(v, 1, patience);",
    "int64_t malt_python_gather(malt_handle v)": "return malt_python_gather_as(v, patience);",
    "int64_t malt_python_scatter(malt_handle v)": "return malt_python_scatter_as(v, 1, patience);",
}

ffibuilder = FFI()
ffibuilder.cdef(declarations((ROOT / "capi" / "malt.h").read_text()))
ffibuilder.cdef("".join(f"{head};\n" for head in SHORT))
ffibuilder.cdef("""extern "Python" {
    int32_t malt_python_look(void);
    int32_t malt_python_report(int64_t, int64_t);
    void malt_python_news(int32_t, const char *);
}""")
ffibuilder.set_source(
    "malt._malt",
    '#include "malt.h"\nstatic int64_t patience;\n'
    + "".join(f"static {head} {{{body}}}\n" for head, body in SHORT.items()),
    include_dirs=[str(ROOT / "capi")],
    library_dirs=[str(ROOT / "build")],
    libraries=["malt"],
    # libmalt.so.0 lies beside the extension, wherever the wheel is installed.
    extra_link_args=["-Wl,-rpath,$ORIGIN", "-Wl,-s"],
    py_limited_api=True,
)
