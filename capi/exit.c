/*
 * What the others are told when the process ends: with status 0 that this rank has
 * left in good order, with another one that it is dead. Only a handler of exit() is
 * told the status; in Python, too, where an atexit function is not.
 */
#define _DEFAULT_SOURCE /* on_exit */
#include "malt.h"
#include "malt_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATIENCE = 200, NAP = 5000000 }; /* for waits in other threads to end: a second */

static int ending;
static int leaver; /* the thread that leaves the job; 0: none does */

int maltc_ending(void) { return __atomic_load_n(&ending, __ATOMIC_ACQUIRE); }

int maltc_ends(void) { return maltc_ending() && syscall(SYS_gettid) != __atomic_load_n(&leaver, __ATOMIC_ACQUIRE); }

static void *leave(void *status)
{
	char text[64];
	__atomic_store_n(&leaver, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	if ((*(int *)status & 0xff) != 0) {
		snprintf(text, sizeof text, "it has ended with exit code %d", *(int *)status & 0xff);
		malt_abort(text, NULL);
		return NULL;
	}
	for (int i = 0; malt_finalize() == MALT_EBUSY && i < PATIENCE; i++)
		maltc_nap(NAP);
	return NULL;
}

/*
 * A thread of its own goes into Go. If faulthandler was on when the library was loaded, Go
 * uses its signal stack on the main thread, and CPython has freed that by now: SIGURG, by
 * which Go preempts, would end the process there (tests/py/test_exit.py forces it).
 */
static void at_exit(int status, void *unused)
{
	pthread_t thread;
	(void)unused;
	if (maltc_forked)
		return;
	__atomic_store_n(&ending, 1, __ATOMIC_RELEASE);
	if (pthread_create(&thread, NULL, leave, &status) == 0)
		pthread_join(thread, NULL);
	else
		leave(&status);
}

malt_status malt_finalize_at_exit(void)
{
	static int done;
	if (maltc_forked)
		return maltc_refuse_child();
	if (__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL) == 0 && on_exit(at_exit, NULL) != 0) {
		static const char text[] = "malt: no memory for a handler of exit()";
		maltc_set_error(MALT_ENOMEM, -1, 0, text, sizeof text - 1);
		return MALT_ENOMEM;
	}
	return MALT_OK;
}
