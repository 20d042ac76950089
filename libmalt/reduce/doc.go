// Package reduce holds the kernels that combine vectors element by element.
//
//	op, err := reduce.ParseOp("mean")
//	…
//	reduce.Fold(op, reduce.Float32, own, [][]byte{own, fromRank1, fromRank3}, nil)
//
// Differ, which finds out where two arrays differ, takes the same paths.
//
// All operands are folded in one pass: each is read once, the output is written
// once. There are kernels in C for AVX2 and AVX-512, chosen at run time, and in
// plain Go for everything else; Path says which of them runs. Tests hold all that the
// machine has to the same bits; make test-avx512 does on a machine without AVX-512.
//
// # The result is a function of the operands and their order
//
// Every path gives the same bits, so ranks that fold the same set in the same
// order hold the same vector, whatever machines they run on:
//
//   - Additions go strictly from the first operand to the last, in the element
//     type. Nothing is fused or reassociated.
//   - A mean is the sum divided by the number of operands, rounded as a division
//     is.
//   - A mean with weights that differ is Σ w·x / Σ w, all of it in float64, and
//     rounded once to the element type. Equal weights cancel: they give the
//     bits of the mean without weights. An operand of weight 0 takes no part.
//   - A NaN in any operand makes the result NaN, in min and max too, and always
//     the same NaN (positive, quiet, no payload). -0 is less than +0.
//   - A single operand is copied, bit for bit.
//
// # Caveats
//
// The output may be one of the operands; it must not overlap one in part.
//
// A sum of float32 is a float32 at every step: it loses small terms beside
// large ones and overflows as numpy's does.
package reduce
