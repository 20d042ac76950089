package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// maskBytes are what one mask of Differ tells about.
const maskBytes = 64 * 4

// Masks is the number of masks that Differ fills for so many bytes.
func Masks(bytes int) int { return (bytes + maskBytes - 1) / maskBytes }

// Differ compares a with b, which is as long, or where b is nil with zeros, in
// words of 4 bytes: word i differs where bit i%64 of mask[i/64] is set. It fills
// Masks(len(a)) masks. Any alignment will do.
//
// Lengths that do not fit are a defect of the caller and panic.
func Differ(mask []uint64, a, b []byte) {
	p := current()
	if len(a) < goBelow {
		p = pathGo
	}
	differOn(p, mask, a, b)
}

func differOn(p path, mask []uint64, a, b []byte) {
	if len(a)%4 != 0 || b != nil && len(b) != len(a) || len(mask) < Masks(len(a)) {
		panic(fmt.Sprintf("reduce: %d and %d bytes compared into %d masks", len(a), len(b), len(mask)))
	}
	if whole := len(a) / maskBytes; p != pathGo && whole > 0 {
		at := whole * maskBytes
		if b == nil {
			differC(mask[:whole], a[:at], nil)
		} else {
			differC(mask[:whole], a[:at], b[:at])
			b = b[at:]
		}
		mask, a = mask[whole:], a[at:]
	}
	differGo(mask, a, b)
}

var zeros [maskBytes]byte

// differGo is the reference, the path where there are no kernels in C, and what
// compares the rest of less than a mask.
func differGo(mask []uint64, a, b []byte) {
	for i := range Masks(len(a)) {
		at, end := i*maskBytes, min((i+1)*maskBytes, len(a))
		x, y := a[at:end], zeros[:end-at]
		if b != nil {
			y = b[at:end]
		}
		mask[i] = 0
		if bytes.Equal(x, y) {
			continue
		}
		for k := 0; k < len(x); k += 4 {
			if binary.NativeEndian.Uint32(x[k:]) != binary.NativeEndian.Uint32(y[k:]) {
				mask[i] |= 1 << (k / 4)
			}
		}
	}
}
