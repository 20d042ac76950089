"""The cffi extension over ``capi/malt.h``; only ``_lib`` uses it."""

from typing import Any

ffi: Any
lib: Any
