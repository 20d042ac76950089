/* Rows with ids through the ABI, on any number of ranks: rank r holds rows 0 and r + 1. */
#include "check.h"

int main(void)
{
	int32_t rank, size;
	malt_handle v;
	void *p, *rows;
	const uint8_t *missing;
	uint64_t n = 0, bytes = 0;

	OK(malt_init(NULL, -1));
	rank = malt_rank(), size = malt_size();
	uint64_t ids[] = {0, (uint64_t)rank + 1}, wants[] = {UINT64_MAX, 1, 0};
	double first[] = {1, 2, 3, 4};
	malt_array a = {.count = 4, .dtype = MALT_FLOAT64, .row = 2, .init = first, .ids = ids, .wants = wants, .nwants = 3};
	OK(malt_vector_new(&a, 1, NULL, "fold=sum", -1, &v));
	OK(malt_object_data(v, 0, &p, &bytes));
	CHECK(bytes == sizeof first && memcmp(p, first, sizeof first) == 0);
	memset(ids, 9, sizeof ids); /* they are ours again */
	OK(malt_vector_sync(v, 1, -1, NULL));
	OK(malt_vector_wanted(v, &rows, &missing, &n));
	const double *x = rows;
	CHECK(n == 3 && missing[0] == 1 && missing[1] == 0 && missing[2] == 0);
	CHECK(x[0] == 0 && x[1] == 0 && x[2] == 3 && x[3] == 4 && x[4] == size && x[5] == 2 * size);
	CHECK(memcmp(p, first, sizeof first) == 0);

	uint64_t all[] = {7, 8, 9};
	OK(malt_vector_configure_rows(v, all, 3, NULL, 0, -1));
	OK(malt_unmap(p));
	OK(malt_object_data(v, 0, &p, &bytes));
	double *w = p;
	CHECK(bytes == 6 * sizeof *w && w[0] == 0 && w[5] == 0);
	w[5] = 1 + rank;
	OK(malt_vector_sync(v, 1, -1, NULL));
	OK(malt_vector_wanted(v, &rows, &missing, &n));
	CHECK(rows == p && missing == NULL && n == 3);
	CHECK(w[4] == 0 && w[5] == size * (size + 1) / 2);

	OK(malt_object_close(v));
	OK(malt_unmap(p));
	OK(malt_finalize());
	return 0;
}
