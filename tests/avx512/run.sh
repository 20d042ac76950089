#!/usr/bin/env bash
# Runs the tests of libmalt/reduce on a processor that has AVX-512: one that Bochs
# emulates, under a Linux of its own. For machines without; takes some minutes.
#
# Needs Debian's apt-get, with which it fetches what it runs (90 MB) into
# build/avx512; nothing is installed. Arguments go to the test, through a shell.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build/avx512
out=$PWD/build/avx512

if [ ! -e "$out/fetched" ]; then
	linux=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)$/\1/p')
	(cd "$out" && apt-get download bochs bochsbios vgabios libltdl7 libsamplerate0 isolinux syslinux-common \
		genisoimage busybox-static "$linux" && for package in *.deb; do dpkg -x "$package" root; done && touch fetched)
fi
bin=$out/root/usr/bin lib=$out/root/usr/lib
export LD_LIBRARY_PATH=$lib/x86_64-linux-gnu:$lib/x86_64-linux-gnu/bochs/plugins
export LTDL_LIBRARY_PATH=$lib/x86_64-linux-gnu/bochs/plugins

# What the guest runs: the test, linked statically, instead of an init.
rm -rf "$out/guest" "$out/disc"
mkdir -p "$out"/guest/{bin,dev,proc} "$out/disc/isolinux"
CGO_ENABLED=1 go test -c -ldflags '-linkmode external -extldflags -static' -o "$out/guest/reduce.test" ./libmalt/reduce
cp "$out/root/bin/busybox" "$out/guest/bin/"
cat >"$out/guest/init" <<END
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mknod /dev/null c 1 3
/bin/busybox mknod /dev/urandom c 1 9
/reduce.test -test.v -test.timeout 60m $* && echo "=== passed" || echo "=== failed"
/bin/busybox sleep 20 # until all of that is out
/bin/busybox poweroff -f
END
chmod +x "$out/guest/init"
(cd "$out/guest" && find . | "$out/root/bin/busybox" cpio -o -H newc 2>/dev/null | gzip -1 >"$out/disc/initrd")
cp "$out"/root/boot/vmlinuz-* "$out/disc/linux"
cp "$lib/ISOLINUX/isolinux.bin" "$lib/syslinux/modules/bios/ldlinux.c32" "$out/disc/isolinux/"
# Bochs gives the compact form of the saved registers a size that Linux does not believe.
cat >"$out/disc/isolinux/isolinux.cfg" <<END
DEFAULT test
LABEL test
KERNEL /linux
INITRD /initrd
APPEND console=ttyS0 quiet nosmp mitigations=off tsc=reliable lpj=1000000 random.trust_cpu=on noxsaves clearcpuid=xsavec,xsaves
END
"$bin/genisoimage" -quiet -o "$out/disc.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat \
	-no-emul-boot -boot-load-size 4 -boot-info-table "$out/disc"

cat >"$out/bochsrc" <<END
megs: 1024
cpu: model=corei7_skylake_x, ips=200000000
romimage: file=$out/root/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=$out/root/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=$out/disc.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$out/said
log: $out/log
display_library: rfb, options="timeout=0"
END
rm -f "$out/said" "$out/keys"
# Debian's Bochs has a debugger: it is told to continue, and then hears nothing more.
mkfifo "$out/keys"
exec 3<>"$out/keys"
echo c >&3
timeout 3600 "$bin/bochs-bin" -q -f "$out/bochsrc" <&3 >"$out/screen" 2>&1 || true
grep -aE '^(---|===|FAIL|panic)|in use:' "$out/said" || true
grep -q 'in use: avx512' "$out/said" || { echo "AVX-512 was not in use" >&2 && exit 1; }
grep -q '^=== passed' "$out/said"
