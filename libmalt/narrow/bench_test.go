package narrow

import "testing"

func BenchmarkEncode(b *testing.B) { measured(b, true) }
func BenchmarkDecode(b *testing.B) { measured(b, false) }

// measured is one direction of each kind, of 1 MiB of float32.
func measured(b *testing.B, encode bool) {
	for _, k := range []Kind{BF16, F16, Int8} {
		b.Run(k.String(), func(b *testing.B) {
			const n = 1 << 18
			f := Format{k, 4}
			values, base, rest := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range values {
				values[i] = float32(i%1000) / 7
			}
			written := make([]byte, f.Bytes(4*n))
			b.SetBytes(4 * n)
			for b.Loop() {
				if encode {
					f.Encode(written, raw(values), raw(base), raw(rest), 1)
				} else {
					f.Decode(raw(values), written, raw(base), 1)
				}
			}
		})
	}
}
