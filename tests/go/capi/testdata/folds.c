/* Folds of one's own, by iteration and by function, on any number of ranks. Each
 * rank contributes a one-hot (its rank, the clock), so the result tells exactly
 * what was folded. */
#include "check.h"

#include <math.h>

static int32_t rank, size;

struct seen {
	malt_handle v;
	int calls;
	int32_t fail;
};

/* Adds the updates up; checks what is told of them. */
static int32_t add(void *own, uint64_t bytes, const malt_update *updates, uint32_t n, void *user)
{
	struct seen *seen = user;
	double *w = own;
	uint64_t count = bytes / sizeof *w;
	seen->calls++;
	CHECK(count == (uint64_t)size && n == (uint32_t)size - 1);
	int32_t from = -1;
	for (uint32_t i = 0; i < n; i++) {
		const double *x = updates[i].data;
		CHECK(updates[i].bytes == bytes);
		CHECK(updates[i].rank > from && updates[i].rank != rank);
		from = updates[i].rank;
		CHECK(updates[i].weight == 1 + from && updates[i].age == 0);
		CHECK(x[from] == (double)updates[i].clock);
		for (uint64_t k = 0; k < count && seen->fail == 0; k++)
			w[k] += x[k];
	}
	/* The vector is in a call: this one. */
	FAILS(MALT_EBUSY, "vector", malt_vector_scatter(seen->v, NULL, 0, 1, -1, NULL));
	FAILS(MALT_EBUSY, "vector", malt_vector_gather(seen->v, NULL, -1, NULL));
	FAILS(MALT_EBUSY, "gather_with", malt_object_gather_end(seen->v, 1));
	FAILS(MALT_EBUSY, "vector", malt_object_close(seen->v));
	FAILS(MALT_EBUSY, "serves one call at a time", malt_finalize());
	return seen->fail;
}

static void by_function(malt_handle v, double *w)
{
	struct seen seen = {v, 0, 0};
	uint32_t folded = 99;
	for (int clock = 1; clock <= 5; clock++) {
		memset(w, 0, sizeof *w * (size_t)size);
		w[rank] = clock;
		OK(malt_vector_scatter(v, NULL, 0, 1 + rank, -1, NULL));
		if (clock == 3 && size > 1) { /* refused by the function: they come again */
			seen.fail = -7;
			FAILS(MALT_ESTATE, "-7", malt_vector_gather_with(v, add, &seen, -1, &folded));
			seen.fail = 0;
		}
		OK(malt_vector_gather_with(v, add, &seen, -1, &folded));
		CHECK(folded == (uint32_t)size - 1);
		for (int32_t r = 0; r < size; r++)
			CHECK(w[r] == clock);
	}
	CHECK(seen.calls == (size == 1 ? 0 : 6)); /* never without updates */
}

static void by_iteration(malt_handle v, double *w)
{
	uint32_t n, again;
	malt_update u;
	for (int clock = 6; clock <= 10; clock++) {
		memset(w, 0, sizeof *w * (size_t)size);
		w[rank] = clock;
		OK(malt_vector_scatter(v, NULL, 0, 1 + rank, -1, NULL));
		OK(malt_object_gather_begin(v, -1, &n));
		OK(malt_object_gather_end(v, 0)); /* not folded */
		OK(malt_object_gather_begin(v, -1, &again));
		CHECK(again == n && n == (uint32_t)size - 1);
		for (uint32_t i = 0; i < n; i++) {
			OK(malt_object_gather_update(v, i, &u));
			w[u.rank] += ((const double *)u.data)[u.rank];
		}
		FAILS(MALT_EINVAL, "numbered from 0", malt_object_gather_update(v, n, &u));
		OK(malt_object_gather_end(v, 1));
		for (int32_t r = 0; r < size; r++)
			CHECK(w[r] == clock);
	}
}

/* A segment carries bytes of any length up to its size. */
static void segment(void)
{
	malt_handle s;
	void *p;
	uint32_t n;
	uint64_t sent;
	malt_update u;
	OK(malt_segment_new(64, "notes", "graph=ring consistency=bsp", -1, &s));
	OK(malt_object_data(s, 0, &p, NULL));
	int length = snprintf(p, 64, "from rank %d", rank);
	OK(malt_segment_scatter(s, (uint64_t)length, NULL, 0, -1, &sent));
	CHECK(sent == (size == 1 ? 0 : (uint64_t)length));
	OK(malt_object_gather_begin(s, -1, &n));
	CHECK(n == (size == 1 ? 0 : 1));
	if (n == 1) {
		char want[64];
		int32_t before = (rank + size - 1) % size;
		OK(malt_object_gather_update(s, 0, &u));
		snprintf(want, sizeof want, "from rank %d", before);
		CHECK(u.rank == before && u.bytes == strlen(want) && memcmp(u.data, want, u.bytes) == 0);
	}
	OK(malt_object_gather_end(s, 1));
	OK(malt_object_close(s));
	OK(malt_unmap(p));
}

int main(void)
{
	OK(malt_init(NULL, -1));
	rank = malt_rank(), size = malt_size();
	malt_handle v = vector((uint64_t)size, MALT_FLOAT64, "consistency=bsp graph=all");
	double *w = memory(v);
	by_function(v, w);
	by_iteration(v, w);
	segment();
	malt_edge edges[8];
	uint32_t n;
	malt_totals totals;
	OK(malt_object_stats(v, &totals, edges, 8, &n));
	CHECK(totals.scatters == 10 && n == (uint32_t)size - 1);
	for (uint32_t i = 0; i < n; i++)
		CHECK(edges[i].rank != rank && edges[i].sent_messages == 10 && edges[i].folded_messages == 10);
	OK(malt_object_close(v));
	OK(malt_unmap(w));
	OK(malt_finalize());
	nothing_left();
	return 0;
}
