//go:build cgo

/*
 * Kernels for AVX2 and AVX-512, and the choice between them. The loops are in
 * kernels_body.h, which is compiled once for each pair of element type and
 * instruction set.
 *
 * They are written with the vector types of GCC and clang, on which + * / mean
 * one IEEE operation per element, and never a fused multiply-add, which AVX-512
 * has: GCC leaves it out in strict C, clang when told so.
 */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif !defined(__STRICT_ANSI__) || defined(__FAST_MATH__)
#error "build with -std=c11 and without -ffast-math: results must not depend on the machine"
#endif

#include "kernels.h"

#include <immintrin.h>
#include <string.h>

/*
 * Up to GROUP operands are read side by side. More would be more streams than
 * the prefetchers follow, and as all vectors start at the same offset in a page
 * their lines would push each other out of L1; so with more operands, BLOCK
 * elements at a time are accumulated in scratch memory, group after group. The
 * order of the additions is the same.
 */
enum { GROUP = 8, BLOCK = 1024 };

/* The tile's vectors must end up in registers, so this loop must go. */
#ifdef __clang__
#define EACH_OF_TILE(u) _Pragma("unroll") for (int u = 0; u < 4; u++)
#else
#define EACH_OF_TILE(u) _Pragma("GCC unroll 4") for (int u = 0; u < 4; u++)
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

/* Where results go: n arrays, from byte at of each on. guard: not those that are NaN or infinite. */
typedef struct {
	const uintptr_t *of;
	size_t n, at;
	int guard;
} outputs;

static inline char *output(outputs o, size_t d, size_t i)
{
	return (char *)o.of[d] + o.at + i;
}

static inline outputs further(outputs o, size_t at)
{
	return (outputs){o.of, o.n, o.at + at, o.guard};
}

/* The operands of malt_change. */
typedef struct {
	char *dst, *base, *from, *to, *copy, *also;
	int rebase;
} changes;

/* T: element, I: integer of its size, QUIET: the bits of its NaN, BYTES: of a
 * vector, VMIN: the instruction, which returns its second operand where the two
 * are zeros or one is NaN, WIDEN and NARROW: to a vector of double and back,
 * ANY: whether a bit of a vector is set. */
#define TARGET __attribute__((target("avx2")))
#define BYTES 32
#define ANY(v) (!_mm256_testz_si256((__m256i)(v), (__m256i)(v)))

#define NAME avx2_f32
#define T float
#define I int32_t
#define QUIET 0x7fc00000
#define VMIN _mm256_min_ps
#define WIDEN _mm256_cvtps_pd
#define NARROW _mm256_cvtpd_ps
#include "kernels_body.h"

#define NAME avx2_f64
#define T double
#define I int64_t
#define QUIET 0x7ff8000000000000
#define VMIN _mm256_min_pd
#define WIDEN(h) (h)
#define NARROW(w) (w)
#include "kernels_body.h"

#undef TARGET
#undef BYTES
#undef ANY
#define TARGET __attribute__((target("avx512f")))
#define BYTES 64
#define ANY(v) (_mm512_test_epi64_mask((__m512i)(v), (__m512i)(v)) != 0)

#define NAME avx512_f32
#define T float
#define I int32_t
#define QUIET 0x7fc00000
#define VMIN _mm512_min_ps
#define WIDEN _mm512_cvtps_pd
#define NARROW _mm512_cvtpd_ps
#include "kernels_body.h"

#define NAME avx512_f64
#define T double
#define I int64_t
#define QUIET 0x7ff8000000000000
#define VMIN _mm512_min_pd
#define WIDEN(h) (h)
#define NARROW(w) (w)
#include "kernels_body.h"

int malt_best_path(void)
{
	/* Both ask the operating system too whether it saves the registers. */
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f"))
		return MALT_PATH_AVX512;
	if (__builtin_cpu_supports("avx2"))
		return MALT_PATH_AVX2;
	return MALT_PATH_GO;
}

size_t malt_fold(int path, int op, int dtype, int guard, const uintptr_t *dst, size_t m, const uintptr_t *src,
                 const double *weights, double total, size_t k, size_t bytes)
{
	const outputs out = {dst, m, 0, guard};
	if (path == MALT_PATH_AVX512 && dtype == MALT_F32)
		return fold_avx512_f32(op, out, src, weights, total, k, bytes);
	if (path == MALT_PATH_AVX512)
		return fold_avx512_f64(op, out, src, weights, total, k, bytes);
	if (dtype == MALT_F32)
		return fold_avx2_f32(op, out, src, weights, total, k, bytes);
	return fold_avx2_f64(op, out, src, weights, total, k, bytes);
}

void malt_change(int path, int dtype, const uintptr_t *at, double weight, int rebase, size_t bytes)
{
	const changes c = {(char *)at[0], (char *)at[1], (char *)at[2], (char *)at[3], (char *)at[4], (char *)at[5], rebase};
	if (path == MALT_PATH_AVX512 && dtype == MALT_F32)
		change_avx512_f32(c, (float)weight, bytes);
	else if (path == MALT_PATH_AVX512)
		change_avx512_f64(c, weight, bytes);
	else if (dtype == MALT_F32)
		change_avx2_f32(c, (float)weight, bytes);
	else
		change_avx2_f64(c, weight, bytes);
}

/* Bit i: word i of the 8 at a is that at b. */
__attribute__((target("avx2"))) static inline uint64_t same_of_8(const char *a, const char *b)
{
	__m256i x = _mm256_loadu_si256((const __m256i *)a), y = _mm256_setzero_si256();
	if (b)
		y = _mm256_loadu_si256((const __m256i *)b);
	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(x, y)));
}

__attribute__((target("avx2"))) void malt_differ(uint64_t *mask, uintptr_t a, uintptr_t b, size_t masks)
{
	const char *x = (const char *)a, *y = (const char *)b;
	for (size_t n = 0; n < masks; n++) {
		uint64_t same = 0;
		for (int i = 0; i < 8; i++)
			same |= same_of_8(x + 256 * n + 32 * i, y ? y + 256 * n + 32 * i : NULL) << (8 * i);
		mask[n] = ~same;
	}
}
