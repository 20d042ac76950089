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

int32_t maltc_look(void)
{
	__atomic_add_fetch(&out, 1, __ATOMIC_SEQ_CST);
	malt_look f = __atomic_load_n(&look, __ATOMIC_SEQ_CST);
	int32_t end = f == NULL ? 0 : f();
	__atomic_sub_fetch(&out, 1, __ATOMIC_SEQ_CST);
	return end != 0 || maltc_ending();
}

int32_t maltc_report(int64_t waited_ms, int64_t left_ms)
{
	__atomic_add_fetch(&out, 1, __ATOMIC_SEQ_CST);
	malt_report f = __atomic_load_n(&report, __ATOMIC_SEQ_CST);
	int32_t end = f == NULL ? 0 : f(waited_ms, left_ms);
	__atomic_sub_fetch(&out, 1, __ATOMIC_SEQ_CST);
	return end;
}

void maltc_news(int32_t rank, const char *why)
{
	__atomic_add_fetch(&out, 1, __ATOMIC_SEQ_CST);
	malt_news f = __atomic_load_n(&news, __ATOMIC_SEQ_CST);
	if (f != NULL)
		f(rank, why);
	__atomic_sub_fetch(&out, 1, __ATOMIC_SEQ_CST);
}

void maltc_troubled(const malt_trouble *trouble)
{
	__atomic_add_fetch(&out, 1, __ATOMIC_SEQ_CST);
	malt_troubled f = __atomic_load_n(&troubled, __ATOMIC_SEQ_CST);
	if (f != NULL)
		f(trouble);
	__atomic_sub_fetch(&out, 1, __ATOMIC_SEQ_CST);
}

int64_t maltc_patience(void)
{
	return __atomic_load_n(&report, __ATOMIC_SEQ_CST) == NULL ? -1 : __atomic_load_n(&patience, __ATOMIC_SEQ_CST);
}

static void wait_until_back(void)
{
	for (int i = 0; i < 1000 && __atomic_load_n(&out, __ATOMIC_SEQ_CST) > 0; i++)
		maltc_nap(1000000);
}

void malt_look_up(malt_look f)
{
	__atomic_store_n(&look, f, __ATOMIC_SEQ_CST);
	if (f == NULL)
		wait_until_back();
}

void malt_on_long_wait(int64_t after_ms, malt_report f)
{
	__atomic_store_n(&patience, after_ms, __ATOMIC_SEQ_CST);
	__atomic_store_n(&report, f, __ATOMIC_SEQ_CST);
	if (f == NULL)
		wait_until_back();
}

void malt_on_death(malt_news f)
{
	__atomic_store_n(&news, f, __ATOMIC_SEQ_CST);
	if (f == NULL)
		wait_until_back();
}

void malt_on_trouble(malt_troubled f)
{
	__atomic_store_n(&troubled, f, __ATOMIC_SEQ_CST);
	if (f == NULL)
		wait_until_back();
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
		if (maltc_look())
			return 1;
	}
	return 0;
}
