/* Handles that are null, stale, foreign or invented, at every function that
 * takes one. World size 1. */
#include "check.h"

/* Every function that takes a handle, called with h; the other arguments are
 * good. */
static void refused(malt_handle h, const char *words)
{
	void *p;
	const malt_fold fold = (malt_fold)abort;
	uint64_t u64;
	uint32_t u32;
	int32_t ranks[4];
	malt_update u;
	malt_graph_measures m;
	const uint8_t *missing;

	FAILS(MALT_EHANDLE, words, malt_object_data(h, 0, &p, &u64));
	FAILS(MALT_EHANDLE, words, malt_vector_scatter(h, NULL, 0, 1, -1, &u64));
	FAILS(MALT_EHANDLE, words, malt_vector_gather(h, NULL, -1, &u32));
	FAILS(MALT_EHANDLE, words, malt_vector_sync(h, 1, -1, &u32));
	FAILS(MALT_EHANDLE, words, malt_object_await(h, -1));
	FAILS(MALT_EHANDLE, words, malt_object_gather_begin(h, -1, &u32));
	FAILS(MALT_EHANDLE, words, malt_object_gather_update(h, 0, &u));
	FAILS(MALT_EHANDLE, words, malt_object_gather_end(h, 1));
	FAILS(MALT_EHANDLE, words, malt_vector_gather_with(h, fold, NULL, -1, &u32));
	FAILS(MALT_EHANDLE, words, malt_vector_allreduce(h, "mean", -1));
	FAILS(MALT_EHANDLE, words, malt_vector_broadcast(h, 0, -1));
	FAILS(MALT_EHANDLE, words, malt_object_configure(h, "", -1));
	FAILS(MALT_EHANDLE, words, malt_object_clock(h, &u64));
	FAILS(MALT_EHANDLE, words, malt_vector_age(h, &u64));
	FAILS(MALT_EHANDLE, words, malt_vector_wanted(h, &p, &missing, &u64));
	FAILS(MALT_EHANDLE, words, malt_vector_configure_rows(h, &u64, 1, NULL, 0, -1));
	FAILS(MALT_EHANDLE, words, malt_vector_sync_slack(h, 1, 1, -1, &u32));
	FAILS(MALT_EHANDLE, words, malt_vector_allreduce_weight(h, "mean", 1, -1));
	FAILS(MALT_EHANDLE, words, malt_object_describe(h, NULL, 0, &u64));
	FAILS(MALT_EHANDLE, words, malt_object_receivers(h, ranks, 4, &u32));
	FAILS(MALT_EHANDLE, words, malt_object_senders(h, ranks, 4, &u32));
	FAILS(MALT_EHANDLE, words, malt_object_stats(h, NULL, NULL, 0, &u32));
	FAILS(MALT_EHANDLE, words, malt_object_close(h));

	FAILS(MALT_EHANDLE, "", malt_object_gather_begin(h, -1, &u32));
	FAILS(MALT_EHANDLE, "", malt_object_gather_update(h, 0, &u));
	FAILS(MALT_EHANDLE, "", malt_object_gather_end(h, 1));
	FAILS(MALT_EHANDLE, "", malt_segment_scatter(h, 0, NULL, 0, -1, &u64));

	FAILS(MALT_EHANDLE, "", malt_graph_receivers(h, 0, 1, ranks, 4, &u32));
	FAILS(MALT_EHANDLE, "", malt_graph_measure(h, &m));
	FAILS(MALT_EHANDLE, "", malt_graph_render(h, "text", NULL, 0, &u64));
	FAILS(MALT_EHANDLE, "", malt_graph_close(h));
}

int main(void)
{
	malt_handle v, later, s, g;
	uint64_t clock;

	refused(0, "null handle"); /* also before malt_init */
	OK(malt_init(NULL, -1));
	v = vector(4, MALT_FLOAT32, NULL);
	void *w = memory(v);
	OK(malt_segment_new(8, NULL, NULL, -1, &s));
	OK(malt_graph_new("ring", 4, 0, &g));

	refused(0, "null handle");
	refused(1, "is not a handle");
	refused(UINT64_MAX, "is not a handle");
	refused(v ^ 1, "");                /* another slot */
	refused(v + (1ull << 32), "");     /* another life of the slot */
	refused(v ^ (1ull << 31), "");     /* a slot far beyond the table */
	refused(v & ~(255ull << 56), "");  /* no kind */

	/* Foreign: open, but of another kind. */
	FAILS(MALT_EHANDLE, "is of a segment: expected a vector", malt_vector_broadcast(s, 0, -1));
	FAILS(MALT_EHANDLE, "is of a graph: expected a vector or segment", malt_object_close(g));
	FAILS(MALT_EHANDLE, "is of a vector: expected a segment", malt_segment_scatter(v, 0, NULL, 0, -1, NULL));
	FAILS(MALT_EHANDLE, "is of a vector: expected a graph", malt_graph_close(v));

	/* Stale: closed, while another object has the slot. */
	OK(malt_object_close(v));
	refused(v, "closed");
	for (int i = 0; i < 1000; i++) {
		later = vector(4, MALT_FLOAT32, NULL);
		void *p = memory(later);
		CHECK(later != v);
		FAILS(MALT_EHANDLE, "closed", malt_object_clock(v, &clock));
		OK(malt_object_clock(later, &clock));
		OK(malt_object_close(later));
		OK(malt_unmap(p));
	}
	refused(later, "closed");
	OK(malt_unmap(w));

	/* Left open: malt_finalize closes them, but for the graph, which is of no job. */
	OK(malt_finalize());
	FAILS(MALT_EHANDLE, "closed", malt_object_close(s));
	OK(malt_graph_close(g));
	refused(s, "");
	nothing_left();
	return 0;
}
