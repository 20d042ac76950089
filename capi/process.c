/*
 * What belongs to threads and processes rather than to the job: each thread's
 * error message, and what becomes of a forked child.
 */
#include "malt.h"
#include "malt_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------- the message of a thread */

/* Each thread's message lies in its own block of malloc, found through a key of
 * pthread. A _Thread_local array would do, too, but Go's runtime makes the
 * library's whole thread-local block static, and dlopen finds little room for
 * such a block in a program that is running. */
struct message {
	size_t cap;
	char text[];
};

static pthread_key_t message_key;

void maltc_set_error(const char *text, size_t n)
{
	struct message *m = pthread_getspecific(message_key);
	if (m == NULL || m->cap <= n) {
		size_t cap = n < 255 ? 256 : n + 1;
		struct message *grown = realloc(m, sizeof *m + cap);
		if (grown == NULL) { /* keep what fits */
			if (m == NULL)
				return;
			n = m->cap - 1;
		} else {
			m = grown;
			m->cap = cap;
			pthread_setspecific(message_key, m);
		}
	}
	memcpy(m->text, text, n);
	m->text[n] = 0;
}

const char *malt_errmsg(void)
{
	struct message *m = pthread_getspecific(message_key);
	return m == NULL ? "" : m->text;
}

/* --------------------------------------------------------- forked children */

/* A forked child has one thread, so none of Go's: a call into Go would hang for
 * ever. The child handler runs before anything else in the child, when there is
 * no other thread, so a plain flag is enough. It also closes what MALT has open:
 * a child that outlives its rank must not hold the rank's memory and sockets.
 *
 * Not seen here: vfork and posix_spawn, whose children only exec; and clone by
 * hand, whose children are their author's. */
int maltc_forked;

static int32_t *descriptors; /* descriptor + 1, or 0; kept by Go */
static size_t descriptor_count;

void maltc_descriptors(void *table, size_t n)
{
	descriptors = table;
	descriptor_count = n;
}

static void in_child(void)
{
	maltc_forked = 1;
	for (size_t i = 0; i < descriptor_count; i++) {
		int32_t fd = __atomic_load_n(&descriptors[i], __ATOMIC_RELAXED);
		if (fd > 0)
			close(fd - 1);
	}
	descriptor_count = 0; /* a child of the child has its own descriptors there */
}

/* Runs when the library is loaded: Go's threads start then, too. */
__attribute__((constructor)) static void loaded(void)
{
	pthread_key_create(&message_key, free);
	pthread_atfork(NULL, NULL, in_child);
}

int32_t maltc_refuse_child(void)
{
	static const char text[] =
		"malt: this process was forked from one that had loaded MALT, and Go's threads do not survive a fork; "
		"start workers with exec (in Python: the \"spawn\" or \"forkserver\" start method), "
		"or do not use MALT in them";
	maltc_set_error(text, sizeof text - 1);
	return MALT_EFORK;
}
