/* A vector beyond the machine's memory: every rank is told so, by what it asked
 * for, nothing is reserved, and the ranks go on in step. */
#include "check.h"

int main(void)
{
	malt_handle v = 0;
	malt_array a = {.count = 1ull << 40, .dtype = MALT_FLOAT32};
	OK(malt_init(NULL, -1));
	for (int i = 0; i < 5; i++) {
		FAILS(MALT_ENOMEM, "4.0 TiB wanted", malt_vector_new(&a, 1, NULL, NULL, -1, &v));
		OK(malt_barrier(-1));
	}
	CHECK(v == 0);
	v = vector(1000, MALT_FLOAT32, NULL);
	OK(malt_vector_sync(v, 1, -1, NULL));
	void *w = memory(v);
	OK(malt_object_close(v));
	OK(malt_unmap(w));
	OK(malt_finalize());
	nothing_left();
	return 0;
}
