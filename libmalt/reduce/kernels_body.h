/*
 * The loops, for one element type and one instruction set; see kernels_amd64.c,
 * which defines what differs before each inclusion.
 *
 * A tile is 4 vectors of output. It stays in registers while all operands of a
 * group are read, so nothing but operands and output moves.
 */
#define FN(f) JOIN(f, NAME)
#define INLINE static inline __attribute__((always_inline)) TARGET
#define V FN(vec)
#define VI FN(bits)
#define W FN(wide)
#define H FN(part)
#define HI FN(part_bits)

typedef T V __attribute__((vector_size(BYTES)));
typedef I VI __attribute__((vector_size(BYTES)));
/* Weighted means are computed in double: H is as many elements as fit W. */
typedef double W __attribute__((vector_size(BYTES)));
typedef T H __attribute__((vector_size(BYTES / sizeof(double) * sizeof(T))));
typedef I HI __attribute__((vector_size(BYTES / sizeof(double) * sizeof(T))));
/* The same in memory: at any address, whatever the memory was declared as. */
typedef T FN(vec_at) __attribute__((vector_size(BYTES), aligned(1), may_alias));
typedef T FN(part_at) __attribute__((vector_size(BYTES / sizeof(double) * sizeof(T)), aligned(1), may_alias));
typedef double FN(wide_at) __attribute__((vector_size(BYTES), aligned(1), may_alias));

_Static_assert(4 * BYTES <= MALT_TILE, "a tile is longer than finite.go says");

INLINE V FN(load)(const char *p)
{
	return *(const FN(vec_at) *)p;
}

/* A vector, or one element and zeros. */
INLINE V FN(load_some)(const char *p, int whole)
{
	V v = {0};
	if (whole)
		return FN(load)(p);
	memcpy(&v, p, sizeof(T));
	return v;
}

INLINE void FN(store_some)(char *p, V v, int whole)
{
	if (whole)
		*(FN(vec_at) *)p = v;
	else
		memcpy(p, &v, sizeof(T));
}

INLINE W FN(load_wide)(const double *p)
{
	return *(const FN(wide_at) *)p;
}

/* Makes every NaN the same one. */
INLINE V FN(settle)(V v)
{
	VI is_nan = (VI)(v != v), quiet = (VI){0} + (I)QUIET;
	return (V)(((VI)v & ~is_nan) | (quiet & is_nan));
}

/* Both orders of VMIN together have the minus of either zero, and every bit of
 * a NaN: "or" keeps them. */
INLINE V FN(least)(V a, V b)
{
	return (V)((VI)VMIN(a, b) | (VI)VMIN(b, a));
}

INLINE V FN(combine)(const int op, V a, V b)
{
	switch (op) {
	case MALT_OP_MIN:
		return FN(least)(a, b);
	case MALT_OP_MAX:
		return -FN(least)(-a, -b);
	default:
		return a + b;
	}
}

/* The number n of operands, and where it is a power of two its inverse, which is
 * exact then: multiplying gives the same bits sooner. Else 0. */
typedef struct {
	T n, inverse;
} FN(count);

INLINE FN(count) FN(count_of)(size_t n)
{
	return (FN(count)){(T)n, n & (n - 1) ? 0 : 1 / (T)n};
}

INLINE V FN(finish)(const int op, V v, FN(count) c)
{
	if (op == MALT_OP_MEAN)
		v = c.inverse ? v * ((V){0} + c.inverse) : v / ((V){0} + c.n);
	return v;
}

/* Whether a sum of x - x is not 0: an x is NaN or infinite. */
INLINE int FN(odd)(V v)
{
	return ANY(v != v);
}

/* What tiles leaves over, from i on, a vector or an element at a time. */
TARGET static __attribute__((noinline)) size_t FN(rest)(int op, int last, outputs out, const char *first,
                                                        const uintptr_t *src, size_t k, size_t at, size_t i, size_t len,
                                                        FN(count) n)
{
	while (i < len) {
		int whole = len - i >= BYTES;
		V a = FN(load_some)(first + i, whole);
		for (size_t j = 0; j < k; j++)
			a = FN(combine)(op, a, FN(load_some)((const char *)src[j] + at + i, whole));
		if (last) {
			a = FN(finish)(op, a, n);
			if (FN(odd)(a - a)) {
				if (out.guard)
					break;
				a = FN(settle)(a);
			}
		}
		for (size_t d = 0; d < out.n; d++)
			FN(store_some)(output(out, d, i), a, whole);
		i += whole ? BYTES : sizeof(T);
	}
	return i;
}

/*
 * Combines first and the k operands src[…] + at into out, len bytes. last: these
 * are the last operands, n in all. Returns how many bytes it has written.
 */
INLINE size_t FN(tiles)(const int op, const int last, outputs out, const char *first, const uintptr_t *src, size_t k,
                        size_t at, size_t len, FN(count) n)
{
	size_t i = 0;
	for (; i + 4 * BYTES <= len; i += 4 * BYTES) {
		V a[4];
		EACH_OF_TILE(u)
			a[u] = FN(load)(first + i + u * BYTES);
		for (size_t j = 0; j < k; j++) {
			const char *p = (const char *)src[j] + at + i;
			EACH_OF_TILE(u)
				a[u] = FN(combine)(op, a[u], FN(load)(p + u * BYTES));
		}
		if (last) {
			EACH_OF_TILE(u)
				a[u] = FN(finish)(op, a[u], n);
			if (FN(odd)((a[0] - a[0]) + (a[1] - a[1]) + (a[2] - a[2]) + (a[3] - a[3]))) {
				if (out.guard)
					return i;
				EACH_OF_TILE(u)
					a[u] = FN(settle)(a[u]);
			}
		}
		for (size_t d = 0; d < out.n; d++) {
			char *p = output(out, d, i);
			EACH_OF_TILE(u)
				*(FN(vec_at) *)(p + u * BYTES) = a[u];
		}
	}
	return i < len ? FN(rest)(op, last, out, first, src, k, at, i, len, n) : i;
}

/* One operation, as constants that the compiler folds into the loops. */
INLINE size_t FN(fold_into)(const int op, outputs dst, const uintptr_t *src, size_t k, size_t bytes, FN(count) n)
{
	if (k <= GROUP)
		return FN(tiles)(op, 1, dst, (const char *)src[0], src + 1, k - 1, 0, bytes, n);
	const FN(count) none = {0, 0};
	_Alignas(64) char scratch[BLOCK * sizeof(T)];
	const uintptr_t here = (uintptr_t)scratch;
	const outputs sum = {&here, 1, 0, 0};
	for (size_t at = 0; at < bytes; at += sizeof scratch) {
		size_t len = bytes - at < sizeof scratch ? bytes - at : sizeof scratch, j = GROUP;
		FN(tiles)(op, 0, sum, (const char *)src[0] + at, src + 1, GROUP - 1, at, len, none);
		for (; k - j > GROUP; j += GROUP)
			FN(tiles)(op, 0, sum, scratch, src + j, GROUP, at, len, none);
		size_t done = FN(tiles)(op, 1, further(dst, at), scratch, src + j, k - j, at, len, n);
		if (done < len)
			return at + done;
	}
	return bytes;
}

/* The same, with a loop of its own for what is folded into one output. */
INLINE size_t FN(fold_as)(const int op, outputs dst, const uintptr_t *src, size_t k, size_t bytes, FN(count) n)
{
	if (dst.n == 1) {
		const uintptr_t one = dst.of[0];
		return FN(fold_into)(op, (outputs){&one, 1, 0, dst.guard}, src, k, bytes, n);
	}
	return FN(fold_into)(op, dst, src, k, bytes, n);
}

INLINE W FN(widen)(uintptr_t at)
{
	return (W)WIDEN(*(const FN(part_at) *)at);
}

INLINE H FN(settle_part)(H h)
{
	HI is_nan = (HI)(h != h), quiet = (HI){0} + (I)QUIET;
	return (H)(((HI)h & ~is_nan) | (quiet & is_nan));
}

INLINE int FN(odd_part)(H h)
{
	W w = (W)WIDEN(h);
	return ANY(w != w);
}

/*
 * The weighted sum of the k operands src[…] + at, len bytes of each, added to
 * sum unless they are the first. It goes to sum, or if they are the last,
 * divided by total, to out. Returns how many bytes it has written of these.
 */
TARGET static size_t FN(weigh)(const int first, const int last, outputs out, double *sum, const uintptr_t *src,
                                const double *weights, size_t k, size_t at, size_t len, double total)
{
	enum { PART = sizeof(H), LANES = sizeof(H) / sizeof(T) };
	size_t i = 0, e = 0;
	for (; i + 4 * PART <= len; i += 4 * PART, e += 4 * LANES) {
		W a[4];
		EACH_OF_TILE(u)
			a[u] = first ? weights[0] * FN(widen)(src[0] + at + i + u * PART) : FN(load_wide)(sum + e + u * LANES);
		for (size_t j = first; j < k; j++)
			EACH_OF_TILE(u)
				a[u] += weights[j] * FN(widen)(src[j] + at + i + u * PART);
		if (!last) {
			EACH_OF_TILE(u)
				*(FN(wide_at) *)(sum + e + u * LANES) = a[u];
			continue;
		}
		H h[4];
		EACH_OF_TILE(u)
			h[u] = (H)NARROW(a[u] / total);
		if (FN(odd_part)((h[0] - h[0]) + (h[1] - h[1]) + (h[2] - h[2]) + (h[3] - h[3]))) {
			if (out.guard)
				return i;
			EACH_OF_TILE(u)
				h[u] = FN(settle_part)(h[u]);
		}
		for (size_t d = 0; d < out.n; d++)
			EACH_OF_TILE(u)
				*(FN(part_at) *)(output(out, d, i) + u * PART) = h[u];
	}
	for (; i < len; i += sizeof(T), e++) { /* what is left, one by one */
		T x;
		double a = first ? 0 : sum[e];
		for (size_t j = 0; j < k; j++) {
			memcpy(&x, (const char *)src[j] + at + i, sizeof x);
			a = first && j == 0 ? weights[0] * (double)x : a + weights[j] * (double)x;
		}
		if (last) {
			H h = (H)NARROW((W){a / total});
			if (FN(odd_part)(h - h)) {
				if (out.guard)
					return i;
				h = FN(settle_part)(h);
			}
			for (size_t d = 0; d < out.n; d++)
				memcpy(output(out, d, i), &h, sizeof(T));
		} else {
			sum[e] = a;
		}
	}
	return i;
}

TARGET static size_t FN(fold_weighted)(outputs dst, const uintptr_t *src, const double *weights, double total, size_t k,
                                       size_t bytes)
{
	if (k <= GROUP)
		return FN(weigh)(1, 1, dst, NULL, src, weights, k, 0, bytes, total);
	_Alignas(64) double sum[BLOCK];
	const outputs none = {NULL, 0, 0, 0};
	const size_t block = BLOCK * sizeof(T);
	for (size_t at = 0; at < bytes; at += block) {
		size_t len = bytes - at < block ? bytes - at : block, j = GROUP;
		FN(weigh)(1, 0, none, sum, src, weights, GROUP, at, len, 0);
		for (; k - j > GROUP; j += GROUP)
			FN(weigh)(0, 0, none, sum, src + j, weights + j, GROUP, at, len, 0);
		size_t done = FN(weigh)(0, 1, further(dst, at), sum, src + j, weights + j, k - j, at, len, total);
		if (done < len)
			return at + done;
	}
	return bytes;
}

TARGET static size_t FN(fold)(int op, outputs dst, const uintptr_t *src, const double *weights, double total, size_t k,
                              size_t bytes)
{
	if (weights)
		return FN(fold_weighted)(dst, src, weights, total, k, bytes);
	FN(count) n = FN(count_of)((size_t)total);
	switch (op) {
	case MALT_OP_MEAN:
	case MALT_OP_MEAN_RECEIVED:
		return FN(fold_as)(MALT_OP_MEAN, dst, src, k, bytes, n);
	case MALT_OP_MIN:
		return FN(fold_as)(MALT_OP_MIN, dst, src, k, bytes, n);
	case MALT_OP_MAX:
		return FN(fold_as)(MALT_OP_MAX, dst, src, k, bytes, n);
	default:
		return FN(fold_as)(MALT_OP_SUM, dst, src, k, bytes, n);
	}
}

INLINE void FN(change_some)(changes c, size_t i, V w, int whole)
{
	V a = FN(load_some)(c.from + i, whole), b = FN(load_some)(c.to + i, whole), base = FN(load_some)(c.base + i, whole);
	V v = (V)((VI)(w * (b - a)) & (VI)(a != b)); /* 0 where a value stays: of infinity the difference is NaN */
	V sum = FN(settle)(base + v);
	FN(store_some)(c.dst + i, sum, whole);
	FN(store_some)(c.from + i, c.rebase ? base : b, whole);
	if (c.copy)
		FN(store_some)(c.copy + i, sum, whole);
	if (c.also)
		FN(store_some)(c.also + i, FN(settle)(FN(load_some)(c.also + i, whole) + v), whole);
}

TARGET static void FN(change)(changes c, T weight, size_t len)
{
	const V w = (V){0} + weight;
	size_t i = 0;
	for (; len - i >= BYTES; i += BYTES)
		FN(change_some)(c, i, w, 1);
	for (; i < len; i += sizeof(T))
		FN(change_some)(c, i, w, 0);
}

#undef FN
#undef INLINE
#undef V
#undef VI
#undef W
#undef H
#undef HI
#undef NAME
#undef T
#undef I
#undef QUIET
#undef VMIN
#undef WIDEN
#undef NARROW
