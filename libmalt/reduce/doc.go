// Package reduce holds the kernels that combine vectors element by element.
//
//	op, err := reduce.ParseOp("mean")
//	…
//	reduce.Fold(op, reduce.Float32, own, [][]byte{own, fromRank1, fromRank3}, nil)
//
// Differ, which finds the elements in which two arrays differ, uses the same kernels.
//
// All operands are folded in one pass: each is read once, the output is written
// once. There are kernels in C for AVX2 and AVX-512, chosen at run time, and in
// plain Go for everything else; Path says which of them runs. Tests compare all kernels
// of the machine bit by bit; make test-avx512 emulates AVX-512 on other machines.
//
// # Reproducible results
//
// Every path gives the same bits, so ranks that fold the same set in the same
// order have the same vector, whatever machines they run on:
//
//   - Additions go strictly from the first operand to the last, in the element
//     type. Nothing is fused or reassociated.
//   - A mean is the sum divided by the number of operands, with the rounding of a
//     division.
//   - A mean with weights that differ is Σ w·x / Σ w, computed in float64 and
//     rounded once to the element type. Equal weights cancel: they give the
//     bits of the mean without weights. An operand of weight 0 is ignored.
//   - A NaN in any operand makes the result NaN, in min and max too, and always
//     the same NaN (positive, quiet, no payload). -0 is less than +0.
//   - A single operand is copied, bit for bit.
//
// # Caveats
//
// The output may be one of the operands, but must not overlap one in part.
//
// A sum of float32 is a float32 at every step: it loses small terms beside
// large ones and overflows as numpy's does.
package reduce
