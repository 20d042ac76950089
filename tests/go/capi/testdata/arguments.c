/* What bad arguments get: the code that the header names, a message that says
 * which value was wrong, and nothing stored. World size 1. */
#include "check.h"

#include <math.h>

static char unterminated[(64 << 20) + 1];

static void before_init(void)
{
	malt_handle h = 0;
	malt_array a = {.count = 4, .dtype = MALT_FLOAT32};
	CHECK(strcmp(malt_errmsg(), "") == 0);
	CHECK(malt_abi_version() == MALT_ABI_VERSION);
	CHECK(strcmp(malt_version(), word("WANT_VERSION")) == 0);
	FAILS(MALT_EINIT, "malt_init", malt_rank());
	FAILS(MALT_EINIT, "malt_init", malt_size());
	FAILS(MALT_EINIT, "malt_init", malt_local_rank());
	FAILS(MALT_EINIT, "malt_init", malt_generation());
	FAILS(MALT_EINIT, "malt_init", malt_barrier(-1));
	FAILS(MALT_EINIT, "malt_init", malt_abort("no job", NULL));
	FAILS(MALT_EINIT, "malt_init", malt_at("a.c:1"));
	FAILS(MALT_EINIT, "malt_init", malt_mark("x"));
	FAILS(MALT_EINIT, "malt_init", malt_log("x", 1));
	FAILS(MALT_EINIT, "malt_init", malt_allgather("x", 1, NULL, NULL, -1));
	FAILS(MALT_EINIT, "malt_init", malt_vector_new(&a, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINIT, "malt_init", malt_vector_check(NULL, NULL));
	FAILS(MALT_EINIT, "malt_init", malt_segment_new(8, NULL, NULL, -1, &h));
	OK(malt_finalize());
	OK(malt_unmap(NULL));
	FAILS(MALT_EINVAL, "is not the memory of a vector", malt_unmap(&h));
}

static void options(void)
{
	FAILS(MALT_EINVAL, "rank", malt_init("rnak=0", -1));
	FAILS(MALT_EINVAL, "rank 3 of 2", malt_init("rank=3 size=2", -1));
	FAILS(MALT_EINVAL, "store", malt_init("rank=0 size=2", -1));
	FAILS(MALT_EINVAL, "store", malt_init("rank=0 size=2 store=nowhere", -1));
	FAILS(MALT_EINVAL, "transport", malt_init("transport=pigeon", -1));
	FAILS(MALT_EINVAL, "is longer than", malt_init(unterminated, -1));
	FAILS(MALT_EINIT, "malt_init", malt_barrier(-1));
	OK(malt_init(NULL, -1));
	FAILS(MALT_EINIT, "already", malt_init(NULL, -1));
	CHECK(malt_rank() == 0 && malt_size() == 1 && malt_local_rank() == 0 && malt_generation() == 1);
}

static void making(void)
{
	malt_handle h = 77;
	float first[4] = {1, 2, 3, 4};
	malt_array a = {.count = 4, .dtype = MALT_FLOAT32, .init = first};
	malt_array bad_type = {.count = 4, .dtype = 7};
	malt_array in_rows = {.count = 4, .dtype = MALT_FLOAT32, .row = 1};
	const uint64_t axes[] = {2, 3}, long_axis[] = {UINT64_MAX, 0};
	malt_array of_six = {.count = 4, .dtype = MALT_FLOAT32, .shape = axes, .axes = 2};
	malt_array no_axes = {.count = 4, .dtype = MALT_FLOAT32, .axes = 1};
	malt_array many_axes = {.count = 4, .dtype = MALT_FLOAT32, .shape = axes, .axes = 65};
	malt_array far = {.count = 0, .dtype = MALT_FLOAT32, .shape = long_axis, .axes = 2};
	uint64_t two_ids[] = {1, 2};
	malt_array odd_ids = {.count = 4, .dtype = MALT_FLOAT32, .row = 3, .ids = two_ids};
	malt_array only_wants = {.count = 4, .dtype = MALT_FLOAT32, .wants = two_ids, .nwants = 2};
	malt_array no_wants = {.count = 2, .dtype = MALT_FLOAT32, .ids = two_ids, .nwants = 2};
	malt_array with_ids = {.count = 2, .dtype = MALT_FLOAT32, .ids = two_ids};
	malt_array endless = {.count = UINT64_MAX, .dtype = MALT_FLOAT64};
	malt_array too_big = {.count = 1ull << 42, .dtype = MALT_FLOAT64};

	FAILS(MALT_EINVAL, "out", malt_vector_new(&a, 1, NULL, NULL, -1, NULL));
	FAILS(MALT_EINVAL, "at least one", malt_vector_new(&a, 0, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "NULL", malt_vector_new(NULL, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "type 7", malt_vector_new(&bad_type, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "shape [2 3]", malt_vector_new(&of_six, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "NULL", malt_vector_new(&no_axes, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "65 axes", malt_vector_new(&many_axes, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "axis 0", malt_vector_new(&far, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "not sparse", malt_vector_new(&in_rows, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "1 ids for 4 elements in rows of 3", malt_vector_new(&odd_ids, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "wants= without ids=", malt_vector_new(&only_wants, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "wants is NULL, but their number is 2", malt_vector_new(&no_wants, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "does not go with ids=", malt_vector_new(&with_ids, 1, NULL, "graph=ring", -1, &h));
	FAILS(MALT_EINVAL, "18446744073709551615", malt_vector_new(&endless, 1, NULL, NULL, -1, &h));
	FAILS(MALT_ENOMEM, "free", malt_vector_new(&too_big, 1, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "name", malt_vector_new(&a, 1, "two words", NULL, -1, &h));
	FAILS(MALT_EINVAL, "is longer than", malt_vector_new(&a, 1, unterminated, NULL, -1, &h));
	FAILS(MALT_EINVAL, "halton", malt_vector_new(&a, 1, NULL, "graph=haltn", -1, &h));
	FAILS(MALT_EINVAL, "graph", malt_vector_new(&a, 1, NULL, "grahp=all", -1, &h));
	FAILS(MALT_EINVAL, "ssp", malt_vector_new(&a, 1, NULL, "consistency=ssp:-1", -1, &h));
	FAILS(MALT_EINVAL, "is longer than", malt_vector_new(&a, 1, NULL, unterminated, -1, &h));
	FAILS(MALT_EINVAL, "segment", malt_segment_new(UINT64_MAX, NULL, NULL, -1, &h));
	FAILS(MALT_EINVAL, "fold", malt_segment_new(8, NULL, "fold=mean", -1, &h));
	CHECK(h == 77);
	FAILS(MALT_EINVAL, "name", malt_vector_check("two words", NULL));
	FAILS(MALT_EINVAL, "halton", malt_vector_check(NULL, "graph=haltn"));
	FAILS(MALT_EINVAL, "ssp", malt_vector_check("w", "consistency=ssp:-1"));
	OK(malt_vector_check("w", "graph=halton consistency=ssp:1 sparse=model"));
	OK(malt_vector_check(NULL, NULL));

	h = 0;
	OK(malt_vector_new(&a, 1, "w", NULL, -1, &h));
	float *w = memory(h);
	CHECK(memcmp(w, first, sizeof first) == 0 && w != first);
	OK(malt_object_close(h));
	OK(malt_unmap(w));
	FAILS(MALT_EINVAL, "unmap", malt_unmap(w));
}

static void one_vector(void)
{
	malt_array parts[3] = {
		{.count = 3, .dtype = MALT_FLOAT32}, {.count = 2, .dtype = MALT_FLOAT64}, {.count = 0, .dtype = MALT_FLOAT32}};
	malt_handle v;
	void *p, *q;
	uint64_t bytes = 0, need = 0, sent = 0, clock = 0;
	uint32_t n = 9, folded = 9;
	int32_t ranks[2], self = 0, nobody = 5;
	char text[64];
	malt_update u;
	malt_totals totals;
	malt_edge edges[2];
	const uint8_t *missing;

	OK(malt_vector_new(parts, 3, "several", "consistency=async", -1, &v));
	OK(malt_object_data(v, 0, &p, &bytes));
	CHECK(bytes == 12);
	OK(malt_object_data(v, 1, &q, &bytes));
	CHECK(bytes == 16 && (char *)q - (char *)p == 16 && (uintptr_t)q % 8 == 0);
	OK(malt_object_data(v, 2, &q, &bytes));
	CHECK(bytes == 0);
	FAILS(MALT_EINVAL, "array 3", malt_object_data(v, 3, &q, &bytes));
	FAILS(MALT_EINVAL, "data", malt_object_data(v, 0, NULL, &bytes));
	FAILS(MALT_EBUSY, "Close it first", malt_unmap(p));

	FAILS(MALT_EINVAL, "weight", malt_vector_scatter(v, NULL, 0, NAN, -1, &sent));
	FAILS(MALT_EINVAL, "weight", malt_vector_scatter(v, NULL, 0, -1, -1, &sent));
	FAILS(MALT_EINVAL, "weight", malt_vector_scatter(v, NULL, 0, INFINITY, -1, &sent));
	FAILS(MALT_EINVAL, "weight", malt_vector_sync(v, NAN, -1, &folded));
	FAILS(MALT_EINVAL, "NULL", malt_vector_scatter(v, NULL, 3, 1, -1, &sent));
	FAILS(MALT_EINVAL, "4294967295", malt_vector_scatter(v, &self, UINT32_MAX, 1, -1, &sent));
	FAILS(MALT_EINVAL, "in graph all rank 0 sends to no rank", malt_vector_scatter(v, &nobody, 1, 1, -1, &sent));
	FAILS(MALT_EINVAL, "mean", malt_vector_gather(v, "maen", -1, &folded));
	FAILS(MALT_EINVAL, "is longer than", malt_vector_gather(v, unterminated, -1, &folded));
	FAILS(MALT_EINVAL, "mean", malt_vector_allreduce(v, "replace", -1));
	FAILS(MALT_EINVAL, "root", malt_vector_broadcast(v, 1, -1));
	FAILS(MALT_EINVAL, "root", malt_vector_broadcast(v, -1, -1));
	FAILS(MALT_EINVAL, "key", malt_object_configure(v, "nonsense", -1));
	FAILS(MALT_EINVAL, "n is NULL", malt_object_gather_begin(v, -1, NULL));
	FAILS(MALT_ESTATE, "gather_begin", malt_object_gather_update(v, 0, &u));
	FAILS(MALT_ESTATE, "gather_begin", malt_object_gather_end(v, 1));
	FAILS(MALT_EINVAL, "fold is NULL", malt_vector_gather_with(v, NULL, NULL, -1, &folded));
	FAILS(MALT_EINVAL, "clock", malt_object_clock(v, NULL));
	FAILS(MALT_EINVAL, "age", malt_vector_age(v, NULL));
	FAILS(MALT_EINVAL, "rows is NULL", malt_vector_wanted(v, NULL, NULL, NULL));
	FAILS(MALT_EINVAL, "has no wanted rows", malt_vector_wanted(v, &q, &missing, NULL));
	FAILS(MALT_EINVAL, "ids is NULL", malt_vector_configure_rows(v, NULL, 1, NULL, 0, -1));
	FAILS(MALT_EINVAL, "has no ids", malt_vector_configure_rows(v, &need, 1, NULL, 0, -1));
	FAILS(MALT_EINVAL, "weight=NaN", malt_vector_allreduce_weight(v, "mean", NAN, -1));
	FAILS(MALT_EINVAL, "slack=65537", malt_vector_sync_slack(v, 65537, 1, -1, NULL));
	CHECK(sent == 0 && folded == 9);

	OK(malt_object_clock(v, &clock));
	CHECK(clock == 0);
	OK(malt_vector_scatter(v, NULL, 0, 1, -1, NULL));
	OK(malt_vector_scatter(v, NULL, 0, 0, 0, &sent));
	OK(malt_object_clock(v, &clock));
	CHECK(clock == 2 && sent == 0);
	OK(malt_vector_gather(v, NULL, 0, &folded));
	CHECK(folded == 0);
	OK(malt_object_gather_begin(v, 0, &n));
	CHECK(n == 0);
	FAILS(MALT_EINVAL, "update 0 of 0", malt_object_gather_update(v, 0, &u));
	FAILS(MALT_EINVAL, "u is NULL", malt_object_gather_update(v, 0, NULL));
	FAILS(MALT_EBUSY, "several", malt_vector_scatter(v, NULL, 0, 1, -1, &sent));
	FAILS(MALT_EBUSY, "several", malt_object_close(v));
	OK(malt_object_gather_end(v, 1));

	OK(malt_object_describe(v, text, sizeof text, &need));
	CHECK(need == strlen(text) + 1 && strstr(text, "consistency=async") != NULL && strstr(text, "name=several") != NULL);
	memset(text, 'x', sizeof text);
	OK(malt_object_describe(v, text, 5, &need));
	CHECK(strcmp(text, "name") == 0 && text[5] == 'x' && need > 5);
	OK(malt_object_describe(v, NULL, 0, &need));
	FAILS(MALT_EINVAL, "cap", malt_object_describe(v, NULL, 5, &need));
	OK(malt_object_receivers(v, ranks, 2, &n));
	CHECK(n == 0);
	OK(malt_object_senders(v, NULL, 0, &n));
	FAILS(MALT_EINVAL, "cap", malt_object_senders(v, NULL, 2, &n));
	OK(malt_object_stats(v, &totals, edges, 2, &n));
	CHECK(totals.scatters == 2 && totals.gathers >= 1 && n == 0);
	OK(malt_object_stats(v, NULL, NULL, 0, NULL));
	OK(malt_job_stats(&totals, edges, 2, &n));
	CHECK(totals.scatters == 0 && totals.wait_seconds >= 0 && n == 0);

	OK(malt_object_close(v));
	((float *)p)[0] = 1; /* still there */
	FAILS(MALT_EHANDLE, "closed", malt_vector_sync(v, 1, -1, NULL));
	OK(malt_unmap(p));
}

static void of_the_job(void)
{
	double x[3] = {1, 2, 3};
	const void *got = NULL;
	uint64_t bytes = 0;
	FAILS(MALT_ESTATE, "received", malt_received(0, &got, &bytes));
	FAILS(MALT_EINVAL, "type 0", malt_allreduce(x, 3, 0, "mean", -1));
	FAILS(MALT_EINVAL, "NULL", malt_allreduce(NULL, 3, MALT_FLOAT64, "mean", -1));
	FAILS(MALT_EINVAL, "elements", malt_allreduce(x, UINT64_MAX / 2, MALT_FLOAT64, "mean", -1));
	FAILS(MALT_EINVAL, "op", malt_allreduce(x, 3, MALT_FLOAT64, NULL, -1));
	FAILS(MALT_EINVAL, "mean", malt_allreduce(x, 3, MALT_FLOAT64, "avg", -1));
	FAILS(MALT_EINVAL, "NULL", malt_allgather(NULL, 3, NULL, NULL, -1));
	FAILS(MALT_EINVAL, "root", malt_broadcast(x, 8, 1, -1));
	FAILS(MALT_EINVAL, "NULL", malt_broadcast(NULL, 8, 0, -1));
	OK(malt_allreduce(x, 3, MALT_FLOAT64, "sum", -1));
	CHECK(x[0] == 1 && x[2] == 3);
	OK(malt_allreduce(NULL, 0, MALT_FLOAT64, "sum", -1));
	const uint64_t shape[] = {1, 3};
	malt_array row = {.count = 3, .dtype = MALT_FLOAT64, .shape = shape, .axes = 2};
	OK(malt_allreduce_array(x, &row, "sum", -1));
	row.count = 2;
	FAILS(MALT_EINVAL, "shape [1 3]", malt_allreduce_array(x, &row, "sum", -1));
	FAILS(MALT_EINVAL, "a is NULL", malt_allreduce_array(x, NULL, "sum", -1));
	OK(malt_allgather(x, sizeof x, NULL, NULL, -1));
	OK(malt_received(0, &got, &bytes));
	CHECK(bytes == sizeof x && got != x && memcmp(got, x, sizeof x) == 0);
	FAILS(MALT_EINVAL, "rank 1", malt_received(1, &got, &bytes));
	FAILS(MALT_EINVAL, "rank -1", malt_received(-1, &got, &bytes));
	FAILS(MALT_EINVAL, "data is NULL", malt_received(0, NULL, &bytes));
	FAILS(MALT_EINVAL, "bytes is NULL", malt_received(0, &got, NULL));
	OK(malt_broadcast(NULL, 0, 0, -1));
	OK(malt_received(0, &got, &bytes));
	CHECK(bytes == 0);
	OK(malt_barrier(0));
}

static void segment(void)
{
	malt_handle s;
	void *p;
	uint64_t bytes, sent, clock, need;
	uint32_t n;
	OK(malt_segment_new(100, "bytes", "consistency=ssp:3", -1, &s));
	OK(malt_object_data(s, 0, &p, &bytes));
	CHECK(bytes == 100);
	FAILS(MALT_EINVAL, "101", malt_segment_scatter(s, 101, NULL, 0, -1, &sent));
	OK(malt_segment_scatter(s, 100, NULL, 0, -1, &sent));
	OK(malt_object_clock(s, &clock));
	CHECK(clock == 1 && sent == 0);
	OK(malt_object_gather_begin(s, -1, &n));
	CHECK(n == 0);
	OK(malt_object_gather_end(s, 1));
	OK(malt_object_describe(s, NULL, 0, &need));
	OK(malt_object_receivers(s, NULL, 0, &n));
	OK(malt_object_senders(s, NULL, 0, &n));
	OK(malt_object_stats(s, NULL, NULL, 0, &n));
	OK(malt_object_close(s));
	OK(malt_unmap(p));
}

static void graphs(void)
{
	malt_handle g = 0;
	int32_t ranks[8];
	uint32_t n;
	uint64_t need;
	char text[32];
	malt_graph_measures m;
	FAILS(MALT_EINVAL, "halton", malt_graph_new("haltn", 8, 0, &g));
	FAILS(MALT_EINVAL, "size 0", malt_graph_new("all", 0, 0, &g));
	FAILS(MALT_EINVAL, "size -4", malt_graph_new("all", -4, 0, &g));
	FAILS(MALT_EINVAL, "", malt_graph_new(NULL, 4, 0, &g));
	FAILS(MALT_EINVAL, "out", malt_graph_new("all", 4, 0, NULL));
	FAILS(MALT_EINVAL, "strongly connected", malt_graph_new("halton-paper", 8, 0, &g));
	CHECK(g == 0);
	OK(malt_graph_new("halton-paper", 8, 1, &g));
	OK(malt_graph_measure(g, &m));
	CHECK(m.connected == 0 && m.diameter == -1 && m.size == 8);
	OK(malt_graph_close(g));
	FAILS(MALT_EHANDLE, "closed", malt_graph_close(g));

	OK(malt_graph_new("halton", 8, 0, &g));
	OK(malt_graph_receivers(g, 0, 1, ranks, 8, &n));
	CHECK(n == 3 && ranks[0] == 1 && ranks[1] == 5 && ranks[2] == 3);
	ranks[1] = -1;
	OK(malt_graph_receivers(g, 2, 1, ranks, 1, &n));
	CHECK(n == 3 && ranks[0] == 3 && ranks[1] == -1);
	FAILS(MALT_EINVAL, "rank 8", malt_graph_receivers(g, 8, 1, ranks, 8, &n));
	OK(malt_graph_measure(g, &m));
	CHECK(m.edges == 24 && m.degree_min == 3 && m.degree_max == 3 && m.connected == 1);
	CHECK(m.second_eigenvalue > 0.499 && m.second_eigenvalue < 0.501);
	FAILS(MALT_EINVAL, "m is NULL", malt_graph_measure(g, NULL));
	OK(malt_graph_render(g, "spec", text, sizeof text, &need));
	CHECK(strcmp(text, "halton") == 0 && need == 7);
	FAILS(MALT_EINVAL, "png", malt_graph_render(g, "png", text, sizeof text, &need));
	OK(malt_graph_render(g, "svg", NULL, 0, &need));
	CHECK(need > 500);
	OK(malt_graph_close(g));
}

static void finalized(void)
{
	malt_handle v = vector(4, MALT_FLOAT32, NULL);
	float *w = memory(v);
	OK(malt_finalize());
	OK(malt_finalize());
	w[3] = 1; /* still there */
	FAILS(MALT_EHANDLE, "closed", malt_object_close(v));
	FAILS(MALT_EINIT, "malt_init", malt_barrier(-1));
	FAILS(MALT_EINIT, "malt_init", malt_rank());
	OK(malt_unmap(w));
	FAILS(MALT_EINVAL, "unmap", malt_unmap(w));

	OK(malt_init(NULL, -1)); /* a new job of one */
	OK(malt_barrier(-1));
	FAILS(MALT_EHANDLE, "closed", malt_object_close(v));
	OK(malt_finalize());
}

int main(void)
{
	memset(unterminated, 'x', sizeof unterminated);
	before_init();
	options();
	making();
	one_vector();
	of_the_job();
	segment();
	graphs();
	finalized();
	nothing_left();
	return 0;
}
