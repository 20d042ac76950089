/*
 * The functions of malt.h: thin wrappers over the exported Go functions, so that
 * the C compiler holds header and code together, and what must be in C because
 * Go cannot run there: who am I, also in a forked child, and the call of a native
 * fold.
 */
#include "malt.h"
#include "malt_internal.h"
#include "_cgo_export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MALT_VERSION
#define MALT_VERSION 0.0.0-unknown /* built without build.sh */
#endif
#define QUOTE(x) #x
#define STRING(x) QUOTE(x)

/* What callers have compiled in. A change here is a new MALT_ABI_VERSION. */
_Static_assert(sizeof(malt_array) == 64 && sizeof(malt_update) == 48 && sizeof(malt_edge) == 80 &&
                       sizeof(malt_totals) == 40 && sizeof(malt_graph_measures) == 40 &&
                       sizeof(malt_error_info) >= 32,
               "the layout of a struct of malt.h has changed");

static malt_status failed(malt_status code, const char *text)
{
	maltc_set_error(code, -1, 0, text, strlen(text));
	return code;
}

void *maltc_alloc(size_t n) { return malloc(n); }

/* The first line of every function that enters Go. */
#define NOT_IN_CHILD \
	do { \
		if (__builtin_expect(maltc_forked, 0)) \
			return maltc_refuse_child(); \
	} while (0)

/* Also of one that Go's runtime does not survive without its descriptors. */
#define WITH_DESCRIPTORS \
	do { \
		NOT_IN_CHILD; \
		if (maltc_descriptors_closed() != MALT_OK) \
			return MALT_EIO; \
	} while (0)

/* A function that is one of Go's. */
#define FORWARD(first, name, params, call) \
	malt_status name params \
	{ \
		first; \
		return call; \
	}
#define GO(name, params, call) FORWARD(NOT_IN_CHILD, name, params, call)
#define GO_WITH_DESCRIPTORS(name, params, call) FORWARD(WITH_DESCRIPTORS, name, params, call)

/* -------------------------------------------------------------- the library */

int32_t malt_abi_version(void) { return MALT_ABI_VERSION; }

const char *malt_version(void) { return STRING(MALT_VERSION); }

/* ------------------------------------------------------------------ the job */

/* Who this rank is. Written under Go's lock when the job is joined or left, read
 * by any thread and by forked children, so that a data loader's worker can ask
 * which shard is its own. */
static struct {
	int joined;
	int32_t rank, size, local_rank;
	int64_t generation;
} self;

void maltc_joined(int32_t rank, int32_t size, int32_t local_rank, int64_t generation)
{
	self.rank = rank;
	self.size = size;
	self.local_rank = local_rank;
	self.generation = generation;
	__atomic_store_n(&self.joined, 1, __ATOMIC_RELEASE);
}

void maltc_viewed(int64_t generation) { __atomic_store_n(&self.generation, generation, __ATOMIC_SEQ_CST); }

void maltc_left(void) { __atomic_store_n(&self.joined, 0, __ATOMIC_RELEASE); }

static malt_status not_joined(void)
{
	return failed(MALT_EINIT, "malt: this process is not in a job\n"
		"malt_init has not been called, or malt_finalize was called after it\nCall malt_init first.");
}

#define JOINED __atomic_load_n(&self.joined, __ATOMIC_ACQUIRE)

int32_t malt_rank(void) { return JOINED ? self.rank : not_joined(); }
int32_t malt_size(void) { return JOINED ? self.size : not_joined(); }
int32_t malt_local_rank(void) { return JOINED ? self.local_rank : not_joined(); }
int64_t malt_generation(void)
{
	if (maltc_forked)
		return JOINED ? self.generation : not_joined();
	return maltGoGeneration();
}

malt_status malt_init(const char *options, int64_t timeout_ms)
{
	WITH_DESCRIPTORS;
	malt_status status = maltGoInit(options, timeout_ms);
	if (status == MALT_OK)
		maltc_find_poller();
	return status;
}

GO_WITH_DESCRIPTORS(malt_witness, (const char *options), maltGoWitness(options))
GO_WITH_DESCRIPTORS(malt_finalize, (void), maltGoFinalize())
GO_WITH_DESCRIPTORS(malt_abort, (const char *reason, const malt_error_info *because),
	maltGoAbort(reason, because))
GO(malt_at, (const char *place), maltGoAt(place))
GO(malt_mark, (const char *text), maltGoMark(text))
GO(malt_log, (const char *name, double value), maltGoLog(name, value))
GO(malt_alive, (int32_t *ranks, uint32_t cap, uint32_t *n), maltGoAlive(ranks, cap, n))
GO(malt_confirm, (int64_t timeout_ms), maltGoConfirm(timeout_ms))
GO(malt_expel, (int32_t rank), maltGoExpel(rank))
GO(malt_barrier, (int64_t timeout_ms), maltGoBarrier(timeout_ms))

malt_status malt_allreduce(void *data, uint64_t count, int32_t dtype, const char *op, int64_t timeout_ms)
{
	malt_array a = {.count = count, .dtype = dtype};
	return malt_allreduce_array(data, &a, op, timeout_ms);
}

GO(malt_allreduce_array, (void *data, const malt_array *a, const char *op, int64_t timeout_ms),
	maltGoAllreduce(data, a, op, timeout_ms))
GO(malt_allgather, (const void *data, uint64_t bytes, const char *call, const char *with, int64_t timeout_ms),
	maltGoAllgather(data, bytes, call, with, timeout_ms))
GO(malt_broadcast, (const void *data, uint64_t bytes, int32_t root, int64_t timeout_ms),
	maltGoBroadcast(data, bytes, root, timeout_ms))
GO(malt_received, (int32_t rank, const void **data, uint64_t *bytes),
	maltGoReceived(rank, (void **)data, bytes))

/* ------------------------------------------------------------------ vectors */

GO_WITH_DESCRIPTORS(malt_vector_new, (const malt_array *arrays, uint32_t n, const char *name,
	const char *options, int64_t timeout_ms, malt_handle *out),
	maltGoVectorNew(arrays, n, name, options, timeout_ms, out))
GO(malt_vector_check, (const char *name, const char *options), maltGoVectorCheck(name, options))
GO(malt_object_data, (malt_handle v, uint32_t i, void **data, uint64_t *bytes), maltGoData(v, i, data, bytes))

malt_status malt_unmap(void *data)
{
	NOT_IN_CHILD;
	return data == NULL ? MALT_OK : maltGoUnmap(data);
}

GO(malt_vector_scatter, (malt_handle v, const int32_t *to, uint32_t nto, double weight, int64_t timeout_ms,
	uint64_t *sent), maltGoVectorScatter(v, NULL, 0, to, nto, weight, timeout_ms, sent))
GO(malt_vector_scatter_rows, (malt_handle v, const int64_t *rows, uint64_t nrows, const int32_t *to,
	uint32_t nto, double weight, int64_t timeout_ms, uint64_t *sent),
	maltGoVectorScatter(v, rows, nrows, to, nto, weight, timeout_ms, sent))
GO(malt_vector_gather, (malt_handle v, const char *fold, int64_t timeout_ms, uint32_t *folded),
	maltGoVectorGather(v, fold, timeout_ms, folded))
GO(malt_vector_sync, (malt_handle v, double weight, int64_t timeout_ms, uint32_t *folded),
	maltGoVectorSync(v, NULL, 0, weight, timeout_ms, folded))
GO(malt_vector_sync_rows, (malt_handle v, const int64_t *rows, uint64_t nrows, double weight,
	int64_t timeout_ms, uint32_t *folded), maltGoVectorSync(v, rows, nrows, weight, timeout_ms, folded))
GO(malt_vector_sync_slack, (malt_handle v, uint64_t slack, double weight, int64_t timeout_ms, uint32_t *folded),
	maltGoVectorSyncSlack(v, slack, weight, timeout_ms, folded))
GO(malt_vector_age, (malt_handle v, uint64_t *age), maltGoVectorAge(v, age))
GO(malt_vector_wanted, (malt_handle v, void **rows, const uint8_t **missing, uint64_t *n),
	maltGoVectorWanted(v, rows, (uint8_t **)missing, n))
GO(malt_vector_configure_rows, (malt_handle v, const uint64_t *ids, uint64_t n, const uint64_t *wants,
	uint64_t nwants, int64_t timeout_ms), maltGoVectorConfigureRows(v, ids, n, wants, nwants, timeout_ms))
GO(malt_object_await, (malt_handle v, int64_t timeout_ms), maltGoAwait(v, timeout_ms))
GO(malt_object_gather_begin, (malt_handle v, int64_t timeout_ms, uint32_t *n),
	maltGoGatherBegin(v, 0, timeout_ms, n))
GO(malt_object_gather_update, (malt_handle v, uint32_t i, malt_update *u), maltGoGatherUpdate(v, i, 1, u))
GO(malt_vector_gather_rows, (malt_handle v, uint32_t i, malt_update *u, uint32_t *rows, void *values,
	uint64_t cap, uint64_t *n), maltGoGatherRows(v, i, u, rows, values, cap, n))
GO(malt_object_gather_end, (malt_handle v, int32_t folded), maltGoGatherEnd(v, 0, folded))

/* The fold runs here, between two calls into Go, so its thread holds nothing of
 * Go's: it may take as long as it likes, and call MALT. */
static malt_status fold_updates(malt_handle v, uint32_t n, malt_fold fold, void *user)
{
	void *own;
	uint64_t bytes;
	char text[160];
	malt_update *updates = malloc(n * sizeof *updates);
	if (updates == NULL)
		return failed(MALT_ENOMEM, "malt: not enough memory\nthe updates of a gather could not be described\n"
			"They come again with the next gather.");
	malt_status status = maltGoGatherUpdate(v, 0, n, updates);
	if (status == MALT_OK)
		status = maltGoVectorMemory(v, &own, &bytes);
	if (status == MALT_OK) {
		int32_t result = fold(own, bytes, updates, n, user);
		if (result != 0) {
			snprintf(text, sizeof text, "malt: the fold function returned %d\n"
				"the next gather gets its updates again\nReturn 0 if it has folded them.", (int)result);
			status = failed(MALT_ESTATE, text);
		}
	}
	free(updates);
	return status;
}

malt_status malt_vector_gather_with(malt_handle v, malt_fold fold, void *user, int64_t timeout_ms, uint32_t *folded)
{
	uint32_t n = 0;
	NOT_IN_CHILD;
	if (fold == NULL)
		return failed(MALT_EINVAL, "malt: fold is NULL\nexpected a function\n"
			"Call malt_vector_gather for a built-in fold.");
	malt_status status = maltGoGatherBegin(v, 1, timeout_ms, &n);
	if (status != MALT_OK)
		return status;
	if (n > 0)
		status = fold_updates(v, n, fold, user);
	malt_status ended = maltGoGatherEnd(v, 1, status == MALT_OK);
	if (status == MALT_OK)
		status = ended;
	if (status == MALT_OK && folded != NULL)
		*folded = n;
	return status;
}

GO(malt_vector_allreduce, (malt_handle v, const char *op, int64_t timeout_ms),
	maltGoVectorAllreduce(v, op, -1, timeout_ms))
GO(malt_vector_allreduce_weight, (malt_handle v, const char *op, double weight, int64_t timeout_ms),
	maltGoVectorAllreduce(v, op, weight, timeout_ms))
GO(malt_vector_broadcast, (malt_handle v, int32_t root, int64_t timeout_ms),
	maltGoVectorBroadcast(v, root, timeout_ms))
GO_WITH_DESCRIPTORS(malt_object_configure, (malt_handle v, const char *options, int64_t timeout_ms),
	maltGoConfigure(v, options, timeout_ms))
GO(malt_object_clock, (malt_handle v, uint64_t *clock), maltGoClock(v, clock))
GO(malt_object_describe, (malt_handle v, char *text, uint64_t cap, uint64_t *need),
	maltGoDescribe(v, text, cap, need))
GO(malt_object_lockstep, (malt_handle v, int32_t *yes), maltGoLockstep(v, yes))
GO(malt_object_receivers, (malt_handle v, int32_t *ranks, uint32_t cap, uint32_t *n),
	maltGoNeighbours(v, 0, ranks, cap, n))
GO(malt_object_senders, (malt_handle v, int32_t *ranks, uint32_t cap, uint32_t *n),
	maltGoNeighbours(v, 1, ranks, cap, n))
GO(malt_object_stats, (malt_handle v, malt_totals *totals, malt_edge *edges, uint32_t cap, uint32_t *n),
	maltGoStats(v, totals, edges, cap, n))
GO(malt_job_stats, (malt_totals *totals, malt_edge *edges, uint32_t cap, uint32_t *n),
	maltGoJobStats(totals, edges, cap, n))
GO(malt_object_close, (malt_handle v), maltGoClose(v))

/* ----------------------------------------------------------------- segments */

GO_WITH_DESCRIPTORS(malt_segment_new, (uint64_t bytes, const char *name, const char *options,
	int64_t timeout_ms, malt_handle *out), maltGoSegmentNew(bytes, name, options, timeout_ms, out))
GO(malt_segment_scatter, (malt_handle s, uint64_t n, const int32_t *to, uint32_t nto, int64_t timeout_ms,
	uint64_t *sent), maltGoSegmentScatter(s, n, to, nto, timeout_ms, sent))

/* ------------------------------------------------------------------- graphs */

GO(malt_graph_new, (const char *spec, int32_t size, int32_t allow_disconnected, malt_handle *out),
	maltGoGraphNew(spec, size, allow_disconnected, out))
GO(malt_graph_receivers, (malt_handle g, int32_t rank, uint64_t clock, int32_t *ranks, uint32_t cap,
	uint32_t *n), maltGoGraphReceivers(g, rank, clock, ranks, cap, n))
GO(malt_graph_measure, (malt_handle g, malt_graph_measures *m), maltGoGraphMeasure(g, m))
GO(malt_graph_render, (malt_handle g, const char *format, char *text, uint64_t cap, uint64_t *need),
	maltGoGraphRender(g, format, text, cap, need))
GO(malt_graph_close, (malt_handle g), maltGoGraphClose(g))

/* ------------------------------------------------------------- this machine */

GO(malt_inspect, (const char *what, char *text, uint64_t cap, uint64_t *need),
	maltGoInspect(what, text, cap, need))
