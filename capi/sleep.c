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
static malt_report report;
static malt_news news;
static malt_troubled troubled;
static int64_t patience; /* before report is called */
static int out;          /* threads that are in one of them, or about to be */

/* Has call use f, the caller's function, unless there is none. */
#define WITH(function, call) \
	do { \
		__atomic_add_fetch(&out, 1, __ATOMIC_SEQ_CST); \
		__typeof__(function) f = __atomic_load_n(&function, __ATOMIC_SEQ_CST); \
		if (f != NULL) \
			call; \
		__atomic_sub_fetch(&out, 1, __ATOMIC_SEQ_CST); \
	} while (0)

int32_t maltc_look(void)
{
	int32_t end = 0;
	WITH(look, end = f());
	return end != 0 || maltc_ends();
}

int32_t maltc_report(int64_t waited_ms, int64_t left_ms)
{
	int32_t end = 0;
	WITH(report, end = f(waited_ms, left_ms));
	return end;
}

void maltc_news(int32_t rank, const char *why) { WITH(news, f(rank, why)); }

void maltc_troubled(const malt_trouble *trouble) { WITH(troubled, f(trouble)); }

int64_t maltc_patience(void)
{
	return __atomic_load_n(&report, __ATOMIC_SEQ_CST) == NULL ? -1 : __atomic_load_n(&patience, __ATOMIC_SEQ_CST);
}

/* Stores the caller's function; where there is none any more, waits until nobody is in the one before. */
#define SET(function, f) \
	do { \
		__atomic_store_n(&function, f, __ATOMIC_SEQ_CST); \
		for (int i = 0; f == NULL && i < 1000 && __atomic_load_n(&out, __ATOMIC_SEQ_CST) > 0; i++) \
			maltc_nap(1000000); \
	} while (0)

void malt_look_up(malt_look f) { SET(look, f); }

void malt_on_long_wait(int64_t after_ms, malt_report f)
{
	__atomic_store_n(&patience, after_ms, __ATOMIC_SEQ_CST);
	SET(report, f);
}

void malt_on_death(malt_news f) { SET(news, f); }

void malt_on_trouble(malt_troubled f) { SET(troubled, f); }

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
		if (maltc_look())
			return 1;
	}
	return 0;
}
