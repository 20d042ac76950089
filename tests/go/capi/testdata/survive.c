/* Three ranks with on_death=continue, of which rank 1 is killed, and rank 2 expelled. */
#include "check.h"

#include <signal.h>

static int32_t died[3];
static int deaths;

static void news(int32_t rank, const char *why)
{
	CHECK(why[0] != 0);
	CHECK(deaths < 3);
	died[deaths++] = rank;
}

static void alive(int want, const int32_t *ranks)
{
	int32_t got[3];
	uint32_t n = 0;
	OK(malt_alive(got, 3, &n));
	CHECK((int)n == want);
	CHECK(memcmp(got, ranks, n * sizeof *got) == 0);
	n = 0;
	OK(malt_alive(NULL, 0, &n));
	CHECK((int)n == want);
}

int main(void)
{
	FAILS(MALT_EINIT, "", malt_confirm(-1));
	FAILS(MALT_EINVAL, "on_death", malt_init("on_death=go", -1));
	FAILS(MALT_EINVAL, "min_ranks", malt_init("min_ranks=2", -1));
	OK(malt_init("on_death=continue", -1));
	malt_on_death(news);
	int rank = malt_rank();
	malt_handle v = vector(4, MALT_FLOAT32, "start=own");
	float *w = memory(v);
	alive(3, (int32_t[]){0, 1, 2});
	CHECK(malt_generation() == 1);
	OK(malt_barrier(-1));
	if (rank == 1)
		raise(SIGKILL);

	OK(malt_barrier(-1)); /* not complete before rank 1 is dead */
	CHECK(deaths == 1 && died[0] == 1);
	alive(2, (int32_t[]){0, 2});
	CHECK(malt_generation() == 2);
	OK(malt_confirm(-1));
	w[0] = (float)rank;
	OK(malt_vector_sync(v, 1.0, -1, NULL));
	CHECK(w[0] == 1.0f); /* of 0 and 2 */
	FAILS(MALT_EPEER, "rank 1 is dead", malt_broadcast(NULL, 0, 1, -1));

	FAILS(MALT_EINVAL, "rank=3", malt_expel(3));
	if (rank == 2)
		for (;;)
			pause();
	FAILS(MALT_EINVAL, "this rank itself", malt_expel(0));
	OK(malt_expel(2));
	OK(malt_barrier(-1));
	CHECK(deaths == 2 && died[1] == 2);
	alive(1, (int32_t[]){0});
	malt_on_death(NULL);
	OK(malt_finalize());
	OK(malt_unmap(w));
	return 0;
}
