/* Two threads on one vector: the second is refused, and messages belong to
 * threads. World size 1, with a fold that holds the vector. */
#include "check.h"

#include <pthread.h>

static malt_handle v;

static void *second(void *unused)
{
	float x = 1;
	(void)unused;
	CHECK(strcmp(malt_errmsg(), "") == 0); /* a new thread's own */
	FAILS(MALT_EBUSY, "vector", malt_vector_sync(v, 1, -1, NULL));
	FAILS(MALT_EBUSY, "vector", malt_vector_scatter(v, NULL, 0, 1, -1, NULL));
	FAILS(MALT_EBUSY, "vector", malt_vector_gather(v, NULL, -1, NULL));
	FAILS(MALT_EBUSY, "vector", malt_vector_allreduce(v, "mean", -1));
	FAILS(MALT_EBUSY, "vector", malt_object_configure(v, "graph=ring", -1));
	FAILS(MALT_EBUSY, "vector", malt_object_close(v));
	FAILS(MALT_EBUSY, "serves one call at a time", malt_finalize());
	OK(malt_allreduce(&x, 1, MALT_FLOAT32, "mean", -1)); /* the job is another object */
	return NULL;
}

/* Many threads at once, each with a vector of its own. */
static void *apart(void *mine)
{
	malt_handle *own = mine;
	float *w = memory(*own);
	for (int i = 0; i < 2000; i++) {
		w[0] += 1;
		OK(malt_vector_sync(*own, 1, -1, NULL));
		FAILS(MALT_EINVAL, "weight", malt_vector_sync(*own, -1, -1, NULL));
	}
	CHECK(w[0] == 2000);
	return NULL;
}

int main(void)
{
	pthread_t threads[8];
	malt_handle own[8];
	uint32_t n;
	OK(malt_init(NULL, -1));
	v = vector(16, MALT_FLOAT32, NULL);
	FAILS(MALT_EHANDLE, "null", malt_object_close(0));
	OK(malt_vector_scatter(v, NULL, 0, 1, -1, NULL));
	OK(malt_object_gather_begin(v, -1, &n));
	CHECK(pthread_create(&threads[0], NULL, second, NULL) == 0);
	CHECK(pthread_join(threads[0], NULL) == 0);
	CHECK(strstr(malt_errmsg(), "null") != NULL);
	OK(malt_object_gather_end(v, 1));

	for (int i = 0; i < 8; i++)
		own[i] = vector(4, MALT_FLOAT32, NULL);
	for (int i = 0; i < 8; i++)
		CHECK(pthread_create(&threads[i], NULL, apart, &own[i]) == 0);
	for (int i = 0; i < 8; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	OK(malt_finalize());
	return 0;
}
