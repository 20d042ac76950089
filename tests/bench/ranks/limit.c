/* What this machine can do: the bytes of an operation, moved with nobody waiting for anybody.
 *
 * Each function reads and writes what the operation has to, in blocks that stay in the
 * first cache, and is compiled for the processor that it runs on. No order is kept
 * between ranks: the values mean nothing, the bytes are the same. */
#include <sched.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 2048 };

/* Reads from[0..k), writes own: k reads and a write of count numbers, own being one of those read if it is named. */
void fold(float *own, float *const *from, int64_t k, int64_t count)
{
	const float scale = 1.0f / (float)k;
	for (int64_t at = 0; at < count; at += BLOCK) {
		const int64_t n = count - at < BLOCK ? count - at : BLOCK;
		float sum[BLOCK];
		memcpy(sum, from[0] + at, (size_t)n * sizeof *sum);
		for (int64_t j = 1; j < k; j++)
			for (int64_t i = 0; i < n; i++)
				sum[i] += from[j][at + i];
		for (int64_t i = 0; i < n; i++)
			own[at + i] = sum[i] * scale;
	}
}

/* A rank's part of an average in place: it folds its share of all arrays, and fetches the shares of the others. */
void average(float *const *all, int64_t rank, int64_t ranks, int64_t count)
{
	const int64_t first = count * rank / ranks, last = count * (rank + 1) / ranks;
	float *from[64];
	for (int64_t j = 0; j < ranks; j++)
		from[j] = all[j] + first;
	fold(all[rank] + first, from, ranks, last - first);
	for (int64_t j = 1; j < ranks; j++) {
		const int64_t other = (rank + j) % ranks;
		const int64_t a = count * other / ranks, b = count * (other + 1) / ranks;
		memcpy(all[rank] + a, all[other] + a, (size_t)(b - a) * sizeof(float));
	}
}

/* Returns when all ranks have come for the turn-th time. */
void meet(int64_t *come, int64_t ranks, int64_t turn)
{
	__atomic_add_fetch(come, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(come, __ATOMIC_ACQUIRE) < turn * ranks)
		sched_yield();
}

/* STREAM's copy, and a pass that only reads. */
void copy(float *to, const float *from, int64_t count)
{
	memcpy(to, from, (size_t)count * sizeof *to);
}

float read_all(const float *from, int64_t count)
{
	float sum[16] = {0};
	for (int64_t i = 0; i + 16 <= count; i += 16)
		for (int64_t j = 0; j < 16; j++)
			sum[j] += from[i + j];
	for (int64_t j = 1; j < 16; j++)
		sum[0] += sum[j];
	return sum[0];
}
