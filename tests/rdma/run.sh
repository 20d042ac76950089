#!/usr/bin/env bash
# Runs what tests/rdma/inside.sh has on RDMA verbs: on the kernel's Soft-RoCE, in an emulated machine that sees
# the files of this one. It needs neither root nor a device, and installs nothing.
#
#     tests/rdma/run.sh [--required] [ARGUMENT OF THE GO TESTS...]
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

fetch() {
	local linux
	linux=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p')
	(cd "$out" && rm -rf root linux-image-*.deb && apt-get download -qq "$linux" && dpkg -x linux-image-*.deb root &&
		rm linux-image-*.deb && busybox depmod -b root "$(ls root/lib/modules)" && touch fetched)
}

mkdir -p "$out"
if [ ! -e "$out/fetched" ]; then
	fetch || { apt-get update -qq && fetch; } || missing "no kernel: apt-get download linux-image-..."
fi
version=$(ls "$out/root/lib/modules")
go test -c -o "$out/" ./rdma/ofi ./rdma/remote

# The guest begins with modules and an init; everything else are links to the files of this machine.
guest=$out/guest modules=lib/modules/$version
rm -rf "$guest"
mkdir -p "$guest"/{dev,proc,sys,tmp,host,"$modules"}
cp /bin/busybox "$guest/"
names='virtio_pci 9pnet_virtio 9p crc32_generic dummy rdma_rxe rdma_ucm ib_uverbs'
(cd "$out/root/$modules" && cp modules.dep "$guest/$modules/" &&
	grep -E "/(${names// /|})\.ko:" modules.dep | tr -d : | tr ' ' '\n' | sort -u | xargs cp --parents -t "$guest/$modules")
cat >"$guest/init" <<END
#!/busybox sh
alias on=/busybox
on mount -t proc proc /proc
on mount -t sysfs sys /sys
on mount -t devtmpfs dev /dev
on mkdir /dev/shm
for m in $names; do on modprobe \$m; done
on rm -r /lib /root
on mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=262144 host /host
for d in /host/*; do [ -e "/\${d##*/}" ] || on ln -s "\$d" /; done
[ -e $PWD ] || { on mkdir -p ${PWD%/*} && on ln -s /host$PWD $PWD; }
/bin/bash $PWD/tests/rdma/inside.sh $* && echo "=== passed" || echo "=== failed"
on poweroff -f
END
chmod +x "$guest/init"
(cd "$guest" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >"$out/initrd")

# The machine is in the background: so the shell hears at once that it is to end, and the machine does not hear Ctrl-C.
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
timeout 900 qemu-system-x86_64 -accel tcg -cpu Nehalem -m 2048 -nographic -no-reboot -nic none \
	-virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
	-kernel "$out"/root/boot/vmlinuz-* -initrd "$out/initrd" -append "console=ttyS0 quiet panic=-1 mitigations=off" </dev/null >"$out/said" 2>&1 &
wait
grep -aE '^ *(---|===|FAIL|panic)|_test.go' "$out/said" || true
grep -aq '^=== passed' "$out/said"
