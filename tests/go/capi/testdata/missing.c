/* Rank 1 of 2 never comes: at the job's timeout the error names it. Then another
 * thread ends malt_init. */
#include "check.h"

#include <pthread.h>

static void *ender(void *unused)
{
	/* The other thread may not be in malt_init yet; then there is nothing to end, and
	 * this tries again. */
	volatile int *done = unused;
	while (!*done)
		OK(malt_finalize());
	return NULL;
}

int main(void)
{
	FAILS(MALT_ETIMEOUT, "rank 1", malt_init("timeout=0.2", -1));
	FAILS(MALT_EINIT, "malt_init", malt_rank());

	pthread_t thread;
	volatile int done = 0;
	CHECK(pthread_create(&thread, NULL, ender, (void *)&done) == 0);
	FAILS(MALT_ECANCELLED, "ended malt_init", malt_init(NULL, -1));
	done = 1;
	CHECK(pthread_join(thread, NULL) == 0);

	FAILS(MALT_ETIMEOUT, "rank 1 of 2 not here", malt_init(NULL, 0));
	OK(malt_init("rank=0 size=1", -1));
	OK(malt_finalize());
	return 0;
}
