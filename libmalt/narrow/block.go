package narrow

import (
	"encoding/binary"
	"math"
)

// put writes a block and leaves in it what that has lost. take reads NaN or an infinity where there
// was one, and nothing is left of it; F16 and Int8 do so for the whole block.
func put[T float32 | float64](k Kind, dst []byte, values []T) (size int) {
	if k == BF16 {
		for i, v := range values {
			h := toBF16(float32(v), v-v == 0)
			binary.LittleEndian.PutUint16(dst[2*i:], h)
			values[i] = number(v - T(fromBF16(h)))
		}
		return 2 * len(values)
	}
	scale := scaleOf(k, values)
	binary.LittleEndian.PutUint32(dst, math.Float32bits(scale))
	dst = dst[4:]
	size = 4 + width(k)*len(values)
	if finite := scale == scale; !finite || scale == 0 {
		clear(dst[:width(k)*len(values)])
		if !finite {
			clear(values)
		}
		return size
	}
	inverse := 1 / T(scale)
	for i, v := range values {
		var got T
		if k == Int8 {
			q := int(math.RoundToEven(float64(v * inverse)))
			dst[i], got = byte(q), T(q)
		} else {
			h := toF16(float32(v * inverse))
			binary.LittleEndian.PutUint16(dst[2*i:], h)
			got = T(fromF16(h))
		}
		values[i] = v - got*T(scale)
	}
	return size
}

// take reads a block.
func take[T float32 | float64](k Kind, values []T, written []byte) (size int) {
	if k == BF16 {
		for i := range values {
			values[i] = T(fromBF16(binary.LittleEndian.Uint16(written[2*i:])))
		}
		return 2 * len(values)
	}
	scale := T(math.Float32frombits(binary.LittleEndian.Uint32(written)))
	written = written[4:]
	for i := range values {
		if k == Int8 {
			values[i] = T(int8(written[i])) * scale
		} else {
			values[i] = T(fromF16(binary.LittleEndian.Uint16(written[2*i:]))) * scale
		}
	}
	return 4 + width(k)*len(values)
}

func width(k Kind) int {
	if k == Int8 {
		return 1
	}
	return 2
}

const (
	steps    = 127      // of Int8, on each side of 0
	smallest = 0x1p-126 // the inverse of a smaller scale can be infinite
)

// scaleOf returns what the values of a block are divided by: NaN if one of them is not finite, or too
// large for a float32; 0 if all are too small to be divided.
func scaleOf[T float32 | float64](k Kind, values []T) float32 {
	var low, high, none T
	for _, v := range values {
		none += v - v
		if v > high {
			high = v
		}
		if v < low {
			low = v
		}
	}
	most := float64(max(high, -low))
	if k == Int8 {
		most /= steps
	} else {
		_, exponent := math.Frexp(most)
		most = math.Ldexp(1, exponent) // nothing is lost by that
	}
	switch {
	case none != 0 || most > math.MaxFloat32:
		return float32(math.NaN())
	case most < smallest || high == low:
		return 0
	}
	return float32(most)
}

// toBF16 rounds to the nearest, to even; what is finite stays so.
func toBF16(v float32, finite bool) uint16 {
	b := math.Float32bits(v)
	switch {
	case v != v:
		return 0x7fc0
	case finite && b&0x7fffffff >= 0x7f7f8000:
		return uint16(b>>16&0x8000 | 0x7f7f)
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// toF16 rounds a number from -1 to 1 to the nearest, to even. The sum has the bits of a float16 at its
// end: float32s between 2**n and 2**(n+1) are as far apart as float16s that are 2**13 times as large.
func toF16(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	if b < 113<<23 { // below 2**-14 float16s are 2**-24 apart
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))
	}
	return sign | uint16((b-112<<23+0xfff+b>>13&1)>>13)
}

func fromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	b := uint32(h&0x7fff) << 13
	if b < 1<<23 {
		v := math.Float32frombits(b+113<<23) - 0x1p-14
		return math.Float32frombits(math.Float32bits(v) | sign)
	}
	return math.Float32frombits(b + 112<<23 | sign)
}
