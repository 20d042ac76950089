package reduce

import "bytes"

// FoldUnlike is FoldTogether of those elements that are not the same bits in all arrays.
// The others stay as they are.
func FoldUnlike(op Op, runs []Run, off int, arrays [][]byte, weights []float64) {
	cut := make([][]byte, len(arrays))
	for _, r := range runs {
		size := r.Type.Size()
		end := min(r.Off+r.Bytes, off+len(arrays[0])) - off
		alike := func(at int) bool {
			for _, a := range arrays[1:] {
				if !bytes.Equal(a[at:at+size], arrays[0][at:at+size]) {
					return false
				}
			}
			return true
		}
		for at := max(r.Off, off) - off; at < end; {
			to := at
			for to < end && !alike(to) {
				to += size
			}
			if to > at {
				for i, a := range arrays {
					cut[i] = a[at:to]
				}
				FoldInto(op, r.Type, cut, cut, weights)
			}
			at = max(to, at+size)
		}
	}
}
