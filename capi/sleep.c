/*
 * How a thread sleeps that waits in a call. It does so in C: the Go runtime keeps
 * a thread of its own awake for some milliseconds after each entry into Go, so a
 * wait that came back 20 times a second, only to look up, would never be quiet.
 */
#include "malt.h"
#include "malt_internal.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

/* How long the word goes unlooked at, and the caller's function uncalled. */
enum { NAP = 50000000 };

static malt_look look;
static int looking; /* threads that are in it, or about to be */

static int32_t look_up(void)
{
	__atomic_add_fetch(&looking, 1, __ATOMIC_SEQ_CST);
	malt_look f = __atomic_load_n(&look, __ATOMIC_SEQ_CST);
	int32_t end = f == NULL ? 0 : f();
	__atomic_sub_fetch(&looking, 1, __ATOMIC_SEQ_CST);
	return end;
}

void malt_look_up(malt_look f)
{
	__atomic_store_n(&look, f, __ATOMIC_SEQ_CST);
	for (int i = 0; f == NULL && i < 1000 && __atomic_load_n(&looking, __ATOMIC_SEQ_CST) > 0; i++)
		maltc_nap(1000000);
}

void maltc_nap(int64_t ns)
{
	struct timespec t = {ns / SECOND, ns % SECOND};
	nanosleep(&t, NULL);
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

int32_t maltc_sleep(void *word, uint32_t seen, int64_t ns)
{
	int64_t end = now() + ns, left;
	while ((left = end - now()) > 0) {
		if (left > NAP)
			left = NAP;
		struct timespec nap = {left / SECOND, left % SECOND};
		if (syscall(SYS_futex, word, FUTEX_WAIT, seen, &nap, NULL, 0) == 0)
			return 0; /* woken */
		if (errno != ETIMEDOUT && errno != EINTR)
			return 0; /* no longer seen */
		if (look_up() != 0 || maltc_ending())
			return 1;
	}
	return 0;
}
