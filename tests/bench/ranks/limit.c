/* What this machine can do: the bytes of an operation, moved without a protocol.
 *
 * Each function reads and writes what the operation has to, once, as fast as is known for
 * the processor that it is compiled on, and does it so many times. Ranks wait for each other
 * where no average could do without, at its beginning and its end; nobody sends or books
 * anything, and nobody may come late, fail, or leave. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

typedef float vector __attribute__((vector_size(32), aligned(4), may_alias));

/* A tile stays in registers while each array is read, and written, once. Without more prefetching than the
 * processor's own, and without stores past the caches: both were slower, at every size. */
enum { LANES = sizeof(vector) / sizeof(float), TILE = 8 };

#define EACH_OF_TILE(u) _Pragma("GCC unroll 8") for (int64_t u = 0; u < TILE; u++)

/* What is done again must not be left out because it has been done. */
#define AGAIN() __asm__ volatile("" ::: "memory")

/* Writes the mean of from[0..k) into to[0..m), from number first up to last. */
static void fold(float *const *to, int64_t m, float *const *from, int64_t k, int64_t first, int64_t last)
{
	const float scale = 1.0f / (float)k;
	int64_t i = first;
	for (; i + TILE * LANES <= last; i += TILE * LANES) {
		vector sum[TILE];
		EACH_OF_TILE(u)
			sum[u] = *(const vector *)(from[0] + i + u * LANES);
		for (int64_t j = 1; j < k; j++)
			EACH_OF_TILE(u)
				sum[u] += *(const vector *)(from[j] + i + u * LANES);
		EACH_OF_TILE(u)
			sum[u] *= scale;
		for (int64_t j = 0; j < m; j++)
			EACH_OF_TILE(u)
				*(vector *)(to[j] + i + u * LANES) = sum[u];
	}
	for (; i < last; i++) {
		float sum = 0;
		for (int64_t j = 0; j < k; j++)
			sum += from[j][i];
		for (int64_t j = 0; j < m; j++)
			to[j][i] = sum * scale;
	}
}

/* Where part r of so many begins: at a cache line, so that no two ranks write to one. */
static int64_t cut(int64_t count, int64_t r, int64_t ranks)
{
	return r == ranks ? count : count / 16 * r / ranks * 16;
}

/* STREAM's copy; past the caches where it is told to. */
void copy(float *to, const float *from, int64_t count, int64_t past, int64_t calls)
{
	for (; calls > 0; calls--) {
		int64_t i = 0;
#ifdef __x86_64__
		for (; past && i + 16 <= count; i += 16)
			for (int64_t j = 0; j < 16; j += 4)
				_mm_stream_ps(to + i + j, _mm_loadu_ps(from + i + j));
		_mm_sfence();
#endif
		memcpy(to + i, from + i, (size_t)(count - i) * sizeof *to);
		AGAIN();
	}
}

/* A pass that only reads. */
float read_all(const float *from, int64_t count, int64_t calls)
{
	vector sum[TILE] = {0};
	for (; calls > 0; calls--) {
		for (int64_t i = 0; i + TILE * LANES <= count; i += TILE * LANES)
			EACH_OF_TILE(u)
				sum[u] += *(const vector *)(from + i + u * LANES);
		AGAIN();
	}
	for (int64_t u = 1; u < TILE; u++)
		sum[0] += sum[u];
	return sum[0][0];
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Where ranks wait for each other, one place for each, all zeros at first. */
struct place {
	_Alignas(64) int64_t come; /* how often this rank has come */
	int32_t folded;            /* how often rank 0 has folded; others sleep on it */
};

static void come(struct place *at, int64_t rank)
{
	__atomic_add_fetch(&at[rank].come, 1, __ATOMIC_SEQ_CST);
}

/* Returns when all have come as often as this rank. */
static void await_all(struct place *at, int64_t rank, int64_t ranks)
{
	for (int64_t r = 0; r < ranks; r++)
		for (int64_t looks = 0; __atomic_load_n(&at[r].come, __ATOMIC_ACQUIRE) < at[rank].come; looks++)
			if (looks > 1000)
				sched_yield();
}

/* An average in place: all begin together, each reads its part of all arrays and writes the mean into all of them,
 * and all have done so before the next. Before that each adds something to its own array, where it is told to: what
 * that is comes with the call, so that the compiler cannot leave out a pass which changes nothing. */
void average(struct place *at, float *const *all, int64_t rank, int64_t ranks, int64_t count, int64_t write,
             float something, int64_t calls)
{
	for (; calls > 0; calls--) {
		if (write)
			for (int64_t i = 0; i < count; i++)
				all[rank][i] += something;
		come(at, rank);
		await_all(at, rank, ranks);
		fold(all, ranks, all, ranks, cut(count, rank, ranks), cut(count, rank + 1, ranks));
		come(at, rank);
		await_all(at, rank, ranks);
	}
}

/* A sync through slots, of ranks that do not wait for each other: each adds something to its own array, copies it to
 * its slot, and folds the slots of the k ranks that send to it into its array. They hold the last updates, or parts of
 * the next: a protocol makes sure of more. */
void exchange(float *own, float *slot, float *const *slots, int64_t k, int64_t count, float something, int64_t calls)
{
	float *from[k + 1];
	from[0] = own;
	memcpy(from + 1, slots, (size_t)k * sizeof *from);
	for (; calls > 0; calls--) {
		for (int64_t i = 0; i < count; i++)
			own[i] += something;
		memcpy(slot, own, (size_t)count * sizeof *own);
		AGAIN();
		fold(&own, 1, from, k + 1, 0, count);
		AGAIN();
	}
}

/* Rank 0 folds all arrays into its own, which the others have just written from their spare ones, and sleep by
 * then. Returns the seconds of a fold. */
double gather(struct place *at, float *const *all, float *const *spare, int64_t rank, int64_t ranks, int64_t count,
              int64_t calls)
{
	double total = 0;
	for (int64_t call = 0; call < calls; call++) {
		const int32_t folded = __atomic_load_n(&at->folded, __ATOMIC_ACQUIRE);
		if (rank) {
			memcpy(all[rank], spare[rank], (size_t)count * sizeof(float));
			come(at, rank);
			while (__atomic_load_n(&at->folded, __ATOMIC_ACQUIRE) == folded)
				syscall(SYS_futex, &at->folded, FUTEX_WAIT, folded, NULL, NULL, 0);
			continue;
		}
		come(at, rank);
		await_all(at, rank, ranks);
		const double start = now();
		fold(all, 1, all, ranks, 0, count);
		total += now() - start;
		__atomic_store_n(&at->folded, folded + 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &at->folded, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	}
	return total / (double)calls;
}
