#!/bin/sh
# Builds libmalt.so: capi/build.sh [folder], default build/ of the checkout.
#
# Makes FOLDER/libmalt.so.0, which is also its SONAME, and the link libmalt.so to
# it. A program or Python extension that is linked with -lmalt looks for
# libmalt.so.0 at run time: carry that file beside it and set rpath to $ORIGIN.
#
# The same sources, Go and gcc give the same bytes, wherever they lie.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
mkdir -p "${1:-$root/build}"
out=$(cd "${1:-$root/build}" && pwd)
version=$(cat "$root/VERSION")
cc=${CC:-gcc}

# Exported are the functions of malt.h, which begin a line with their type, and
# nothing else: maltGo…, maltc_…, the kernels, cgo and the Go runtime stay local.
exports=$out/malt.map
{
	echo '{ global:'
	sed -n '/^typedef/d; s/^[a-z].*[ *]\(malt_[a-z_]*\)(.*/\1;/p' "$here/malt.h"
	echo 'local: *; };'
} >"$exports"

# Not taken from the caller's environment: the flags are part of what is tested.
cflags="-O2 -g -ffile-prefix-map=$root=. -DMALT_VERSION=$version"
ldflags="-Wl,-soname,libmalt.so.0 -Wl,--version-script=$exports -Wl,-z,relro -Wl,-z,now"
if printf '#include <features.h>\n__GLIBC__\n' | $cc -E -P - 2>/dev/null | grep -q '^[0-9]'; then
	# glibc 2.34 moved pthread_* from libpthread to libc. glibc_compat.h binds
	# them to the versions that both have, and libpthread.so.0 is named so that a
	# glibc from before the move loads it. The header must reach every C file, Go's
	# own runtime/cgo included, which only the environment does.
	# Go knows which flags it has compiled that with, and not which header: hence the sum.
	sum=$(cksum <"$here/glibc_compat.h")
	cflags="$cflags -include $here/glibc_compat.h -DMALT_COMPAT=${sum%% *}"
	ldflags="$ldflags -Wl,--no-as-needed -l:libpthread.so.0 -Wl,--as-needed"
fi

cd "$root"
CGO_ENABLED=1 CC=$cc CGO_CFLAGS=$cflags CGO_LDFLAGS='' \
	go build -buildmode=c-shared -trimpath -buildvcs=false -tags netgo,osusergo \
	-ldflags "-s -w -buildid= -extldflags '$ldflags'" \
	-o "$out/libmalt.so.0" ./capi
rm -f "$out/libmalt.so.h" "$exports" # cgo's header is of the maltGo… functions
ln -sf libmalt.so.0 "$out/libmalt.so"
