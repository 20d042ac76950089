"""The extension ``malt._malt``: cffi's view of ``capi/malt.h``.

The header is the only place where the C interface is written down: what cffi
gets to read is the header without what only a C preprocessor understands.
The compiler then checks that reading against the header itself.

Python adds forms of the calls that training loops make most. They return what the
others store, or a status below 0. Those of scatter and gather have a second form that takes nothing but
the object, since a call with one argument needs no tuple: its weight is 1, its timeout
malt_python_patience, as that of the syncs that ``quick.c`` makes. Python also adds the functions that malt_look_up,
malt_on_long_wait, malt_on_death and malt_on_trouble call, and the handler of the signal that `malt stack` sends:
with descriptor -1 the signal is ignored.
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
    "void malt_python_leaves(int64_t after_ms)": "malt_on_long_wait(after_ms, leaving);",
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
    "int64_t malt_python_clock(malt_handle o)": """
        uint64_t clock;
        malt_status status = malt_object_clock(o, &clock);
        return status == MALT_OK ? (int64_t)clock : status;
    """,
    "int64_t malt_python_gather(malt_handle v)": "return malt_python_gather_as(v, patience);",
    "int64_t malt_python_scatter(malt_handle v)": "return malt_python_scatter_as(v, 1, patience);",
}

STACKS = """
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sigaction dumps;
static int to;
static pid_t of;

/* faulthandler's handler, then a line behind which nothing more comes; both in the main thread, since
   no thread can look at the stack of another one that runs. Go needs SA_ONSTACK, which faulthandler
   leaves out: the thread may be on the small stack of a goroutine. A forked child has the handler,
   too, and is not the rank. */
static void dump(int number)
{
    static const char end[] = "end\\n";
    int kept = errno;
    if (getpid() != of) {
    } else if (syscall(SYS_gettid) != of) {
        syscall(SYS_tgkill, of, of, number);
    } else {
        dumps.sa_handler(number);
        if (write(to, end, sizeof end - 1) < 0) { /* there is nobody to tell */
        }
    }
    errno = kept;
}

static int malt_python_stacks(int number, int fd)
{
    struct sigaction a = {.sa_handler = SIG_IGN};
    if (fd >= 0) {
        if (sigaction(number, NULL, &dumps) != 0)
            return -1;
        to = fd;
        of = getpid();
        a.sa_handler = dump;
        a.sa_flags = SA_ONSTACK | SA_RESTART;
    }
    return sigaction(number, &a, NULL);
}
"""

LEAVING = """
#include <stdio.h>

/* Says for whom a process that is ending still waits: no interpreter is left that could warn. */
static int32_t leaving(int64_t waited_ms, int64_t left_ms)
{
    malt_error_info e = {.size = sizeof e};
    malt_error(&e);
    dprintf(2, "malt: %s has waited for %.0f s, and continues for %.0f s\\n%s\\n%s\\n", e.call, waited_ms / 1e3,
            left_ms / 1e3, e.where, e.advice);
    return 0;
}
"""

ffibuilder = FFI()
ffibuilder.cdef(declarations((ROOT / "capi" / "malt.h").read_text()))
ffibuilder.cdef("".join(f"{head};\n" for head in SHORT))
ffibuilder.cdef("int malt_python_stacks(int number, int fd);")
ffibuilder.cdef("void malt_python_quicken(uintptr_t address);")
ffibuilder.cdef("""extern "Python" {
    int32_t malt_python_look(void);
    int32_t malt_python_report(int64_t, int64_t);
    void malt_python_news(int32_t, const char *);
    void malt_python_troubled(const malt_trouble *);
}""")
ffibuilder.set_source(
    "malt._malt",
    "#define _GNU_SOURCE\n"
    + STACKS
    + '#include <pthread.h>\n#include "malt.h"\nstatic int64_t patience;\n'
    + LEAVING
    + "".join(f"static {head} {{{body}}}\n" for head, body in SHORT.items())
    + (ROOT / "python" / "quick.c").read_text(),
    include_dirs=[str(ROOT / "capi")],
    library_dirs=[str(ROOT / "build")],
    libraries=["malt"],
    # libmalt.so.0 lies beside the extension, wherever the wheel is installed.
    extra_link_args=["-Wl,-rpath,$ORIGIN", "-Wl,-s"],
    py_limited_api=True,
)
