/* Sparse vectors through the ABI, on any number of ranks: rows that are found and
 * rows that are named, and what folds of one's own see. */
#include "check.h"

#define ROWS 100
#define WIDTH 2

static int32_t rank, size;

static malt_handle sparse(const char *options, float **w)
{
	malt_array a = {.count = ROWS * WIDTH, .dtype = MALT_FLOAT32, .row = WIDTH};
	malt_handle v;
	void *p;
	OK(malt_vector_new(&a, 1, NULL, options, -1, &v));
	OK(malt_object_data(v, 0, &p, NULL));
	*w = p;
	return v;
}

static void done(malt_handle v, float *w)
{
	OK(malt_object_close(v));
	OK(malt_unmap(w));
}

/* Looks at the rows of each update and folds them by hand: rank r sends rows r and
 * ROWS-1, elements 1 + r. */
static void by_rows(malt_handle v, float *w, float expected_rest)
{
	uint32_t n, rows[ROWS];
	float values[ROWS * WIDTH];
	uint64_t count;
	malt_update u, whole;
	OK(malt_object_gather_begin(v, -1, &n));
	CHECK(n == (uint32_t)size - 1);
	for (uint32_t i = 0; i < n; i++) {
		OK(malt_vector_gather_rows(v, i, &u, NULL, NULL, 0, &count));
		CHECK(count == 2 && u.data == NULL && u.bytes == 0 && u.rank != rank && u.clock == 1 && u.weight == 1);
		OK(malt_vector_gather_rows(v, i, NULL, rows, values, ROWS, NULL));
		CHECK(rows[0] == (uint32_t)u.rank && rows[1] == ROWS - 1);
		for (int k = 0; k < 2 * WIDTH; k++)
			CHECK(values[k] == (float)(1 + u.rank));
		OK(malt_object_gather_update(v, i, &whole));
		const float *x = whole.data;
		CHECK(whole.bytes == sizeof(float) * ROWS * WIDTH && whole.rank == u.rank);
		CHECK(x[WIDTH * u.rank] == (float)(1 + u.rank) && x[WIDTH * rank] == expected_rest && x[WIDTH * 50] == 0);
		w[WIDTH * u.rank] = values[0];
	}
	FAILS(MALT_EINVAL, "numbered from 0", malt_vector_gather_rows(v, n, &u, rows, values, ROWS, &count));
	if (n > 0)
		FAILS(MALT_EINVAL, "cap", malt_vector_gather_rows(v, 0, &u, NULL, values, ROWS, &count));
	OK(malt_object_gather_end(v, 1));
	FAILS(MALT_ESTATE, "gather_begin", malt_vector_gather_rows(v, 0, &u, rows, values, ROWS, &count));
	for (int32_t r = 0; r < size; r++)
		CHECK(w[WIDTH * r] == (float)(1 + r));
}

static void own_rows(float *w)
{
	for (int k = 0; k < WIDTH; k++)
		w[WIDTH * rank + k] = w[WIDTH * (ROWS - 1) + k] = (float)(1 + rank);
}

int main(void)
{
	float *w;
	uint64_t sent = 77, count;
	uint32_t folded, rows[1];
	const int64_t named[3] = {7, 3, 7}, outside[2] = {0, ROWS}, negative = -1;
	OK(malt_init(NULL, -1));
	rank = malt_rank(), size = malt_size();
	uint64_t two = (uint64_t)(size - 1) * (8 + 8 + 2 * WIDTH * sizeof(float));

	malt_handle v = sparse("sparse=model fold=replace", &w);
	FAILS(MALT_EINVAL, "row 100", malt_vector_scatter_rows(v, outside, 2, NULL, 0, 1, -1, &sent));
	FAILS(MALT_EINVAL, "row -1", malt_vector_sync_rows(v, &negative, 1, 1, -1, &folded));
	FAILS(MALT_EINVAL, "rows is NULL", malt_vector_scatter_rows(v, NULL, 2, NULL, 0, 1, -1, &sent));
	CHECK(sent == 77);
	own_rows(w);
	OK(malt_vector_scatter(v, NULL, 0, 1, -1, &sent));
	CHECK(sent == two);
	by_rows(v, w, (float)(1 + rank));
	OK(malt_vector_scatter_rows(v, named, 3, NULL, 0, 1, -1, &sent)); /* 3 and 7 */
	CHECK(sent >= two);
	OK(malt_vector_gather(v, NULL, -1, &folded));
	OK(malt_vector_allreduce(v, "max", -1));
	OK(malt_vector_scatter(v, NULL, 0, 1, -1, &sent)); /* all have the same */
	CHECK(sent == (uint64_t)(size - 1) * 8);
	OK(malt_vector_gather(v, NULL, -1, &folded));
	w[0] += 1;
	OK(malt_vector_sync_rows(v, named, 0, 1, -1, &folded)); /* none */
	CHECK(folded == (uint32_t)size - 1 && w[0] == 2);
	done(v, w);

	v = sparse("sparse=gradient fold=sum", &w);
	own_rows(w);
	OK(malt_vector_scatter(v, NULL, 0, 1, -1, &sent));
	CHECK(sent == two);
	by_rows(v, w, 0);
	done(v, w);

	v = vector(4, MALT_FLOAT32, "");
	FAILS(MALT_EINVAL, "not sparse", malt_vector_scatter_rows(v, named, 1, NULL, 0, 1, -1, &sent));
	OK(malt_vector_scatter(v, NULL, 0, 1, -1, NULL));
	OK(malt_object_gather_begin(v, -1, &folded));
	if (folded > 0)
		FAILS(MALT_EINVAL, "not sparse", malt_vector_gather_rows(v, 0, NULL, rows, rows, 1, &count));
	OK(malt_object_gather_end(v, 1));
	w = memory(v);
	done(v, w);
	OK(malt_finalize());
	nothing_left();
	return 0;
}
