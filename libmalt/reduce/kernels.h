/*
 * The C kernels. What they compute is documented in doc.go; kernels.go is the
 * reference that they equal bit for bit.
 */
#ifndef MALT_KERNELS_H
#define MALT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* The values of path, Op and DType in Go. */
enum { MALT_PATH_GO, MALT_PATH_AVX2, MALT_PATH_AVX512 };
enum { MALT_OP_MEAN = 1, MALT_OP_MEAN_RECEIVED, MALT_OP_SUM, MALT_OP_MIN, MALT_OP_MAX };
enum { MALT_F32 = 1, MALT_F64 };
/* Results that are looked at together take up to so many bytes. */
enum { MALT_TILE = 256 };

/* The best path that CPU and operating system support. */
int malt_best_path(void);

/*
 * Folds the first bytes bytes of the k >= 1 operands at src[0 … k-1] into each of
 * the m outputs at dst[0 … m-1], which may be some of them. weights is NULL, or one per operand for a mean, with
 * total their sum; without, total is what a mean is divided by. bytes is a multiple
 * of the element's size. Nothing is kept.
 * With guard it ends before MALT_TILE bytes, or what is left, of which a result is NaN or
 * infinite. Returns how many bytes it has written.
 */
size_t malt_fold(int path, int op, int dtype, int guard, const uintptr_t *dst, size_t m, const uintptr_t *src,
                 const double *weights, double total, size_t k, size_t bytes);

/*
 * Writes the bytes bytes of base + weight * (to - from) to dst and copy, and adds the change to also. Then from
 * becomes to, or with rebase base. at: dst, base, from, to, copy or NULL, also or NULL.
 */
void malt_change(int path, int dtype, const uintptr_t *at, double weight, int rebase, size_t bytes);

/*
 * For every path but MALT_PATH_GO: sets bit i of mask[n] where word 64 * n + i,
 * of 4 bytes, at a is not that at b, or 0 where b is NULL, and clears the others.
 */
void malt_differ(uint64_t *mask, uintptr_t a, uintptr_t b, size_t masks);

#endif
