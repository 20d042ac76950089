#!/usr/bin/env bash
# Runs the tests of rdma/ofi on RDMA verbs, and that payload goes by them and not by the connection: on the
# kernel's Soft-RoCE, in an emulated machine. It needs neither root nor a device, and installs nothing.
#
#     tests/rdma/run.sh [--required] [ARGUMENT OF THE TEST...]
#
# Needs Debian's packages below, and fetches a kernel (70 MB) into build/rdma. Where that cannot be, it says
# so and ends well; --required makes it a failure.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$PWD/build/rdma

required=0
[ "${1:-}" != --required ] || { required=1 && shift; }
missing() {
	echo "test-rdma: $([ $required = 1 ] && echo failed || echo skipped): $*"
	exit $required
}

while read -r file package; do
	compgen -G "$file" >/dev/null || missing "no $file: apt install $package"
done <<<"/usr/bin/qemu-system-x86_64 qemu-system-x86
/bin/busybox busybox-static
/usr/bin/rdma iproute2
/usr/lib/*/libfabric.so.1 libfabric1
/usr/lib/*/libibverbs/librxe-rdmav*.so ibverbs-providers"

mkdir -p "$out"
if [ ! -e "$out/fetched" ]; then
	linux=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p')
	(cd "$out" && rm -rf root && apt-get download "$linux" && dpkg -x linux-image-*.deb root && rm linux-image-*.deb &&
		busybox depmod -b root "$(ls root/lib/modules)" && touch fetched) || missing "no kernel: apt-get download $linux"
fi
version=$(ls "$out/root/lib/modules")

# What the guest has: the test with all libraries that it may open, modules, and an init.
guest=$out/guest modules=lib/modules/$version
rm -rf "$guest"
mkdir -p "$guest"/{bin,dev,proc,sys,tmp,etc,"$modules"}
go test -c -o "$guest/" ./rdma/ofi ./rdma/remote
cp /bin/busybox "$guest/bin/"
libraries=(/usr/lib/*/libfabric.so.1 /usr/lib/*/libibverbs/librxe-rdmav*.so)
for file in "$guest"/*.test /usr/bin/rdma "${libraries[@]}"; do
	ldd "$file" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*\) .*/\1/p'
done | sort -u | xargs -I{} cp --parents -L {} "$guest"
cp --parents -L /usr/bin/rdma "${libraries[@]}" /etc/libibverbs.d/rxe.driver "$guest"
(cd "$out/root/$modules" && cp modules.dep "$guest/$modules/" &&
	grep -E '/(crc32_generic|dummy|rdma_rxe|rdma_ucm|ib_uverbs)\.ko:' modules.dep | tr -d : | tr ' ' '\n' | sort -u | xargs cp --parents -t "$guest/$modules")
cat >"$guest/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for m in crc32_generic dummy rdma_rxe rdma_ucm ib_uverbs; do modprobe \$m; done
ip link set lo up
ip addr add 10.0.0.1/24 dev dummy0
ip link set dummy0 up
/usr/bin/rdma link add rxe0 type rxe netdev dummy0
ulimit -l unlimited
export GOTRACEBACK=all
/ofi.test -test.run '^TestVerbs' -test.v -test.timeout 10m $* &&
/remote.test -test.run '^TestNoPayloadOverTheConnection$' -test.v -test.timeout 10m $* && echo "=== passed" || echo "=== failed"
poweroff -f
END
chmod +x "$guest/init"
echo 127.0.0.1 localhost >"$guest/etc/hosts" # which libfabric looks up
echo hosts: files >"$guest/etc/nsswitch.conf"
(cd "$guest" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >"$out/initrd")

timeout 900 qemu-system-x86_64 -accel tcg -m 1024 -nographic -no-reboot -nic none \
	-kernel "$out"/root/boot/vmlinuz-* -initrd "$out/initrd" -append "console=ttyS0 quiet panic=-1 mitigations=off" </dev/null >"$out/said" 2>&1 || true
grep -aE '^ *(---|===|FAIL|panic)|_test.go' "$out/said" || true
grep -aq '^=== passed' "$out/said"
