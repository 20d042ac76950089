/*
 * Go's runtime starts threads when it needs them, and where the kernel gives it none
 * it aborts: Python's faulthandler then shows where its threads are, and nothing says
 * what to do. glibc_compat.h leads each call of pthread_create in this library here.
 */
#include "malt_internal.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#ifdef pthread_create /* by glibc_compat.h */
#undef pthread_create
extern int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

enum { PATIENCE = 100, NAP = 10000000 }; /* a second: threads of others may be about to end */

int maltc_pthread_create(pthread_t *thread, const pthread_attr_t *with, void *(*run)(void *), void *argument)
{
	static const char text[] = "malt: the system gives this process no more threads, which MALT needs\n"
	                           "too many processes and threads for `ulimit -u` or the control group (pids.max), or no memory for one\n"
	                           "Raise the limit, or start fewer ranks. The job cannot go on.\n";
	int error;
	for (int i = 0; (error = pthread_create(thread, with, run, argument)) == EAGAIN && i < PATIENCE; i++)
		maltc_nap(NAP);
	if (error == EAGAIN && !maltc_ending()) {
		if (write(2, text, sizeof text - 1) < 0) { /* there is nobody to tell */
		}
		_exit(1);
	}
	return error;
}
#endif
