/*
 * What belongs to threads and processes rather than to the job: each thread's
 * error message, and what becomes of a forked child.
 */
#define _GNU_SOURCE /* mremap */
#include "malt.h"
#include "malt_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------- the message of a thread */

/* Each thread's error lies in its own block of malloc, found through a key of
 * pthread. A _Thread_local array would do, too, but Go's runtime makes the
 * library's whole thread-local block static, and dlopen finds little room for
 * such a block in a program that is running. */
struct message {
	int32_t code, rank, death;
	size_t cap;
	char text[]; /* the strings of malt_error_info, each with its 0 */
};

enum { STRINGS = 7 };

static pthread_key_t message_key;

void maltc_set_error(int32_t code, int32_t rank, int32_t death, const char *text, size_t n)
{
	struct message *m = pthread_getspecific(message_key);
	if (m == NULL || m->cap < n + STRINGS) {
		size_t cap = n + STRINGS < 256 ? 256 : n + STRINGS;
		struct message *grown = realloc(m, sizeof *m + cap);
		if (grown == NULL) { /* keep what fits */
			if (m == NULL)
				return;
			n = m->cap - STRINGS;
		} else {
			m = grown;
			m->cap = cap;
			pthread_setspecific(message_key, m);
		}
	}
	m->code = code;
	m->rank = rank;
	m->death = death;
	memcpy(m->text, text, n);
	memset(m->text + n, 0, STRINGS);
}

/* Takes the thread's error away; the next one that is set has memory of its own. */
void *maltc_keep_error(void)
{
	void *kept = pthread_getspecific(message_key);
	pthread_setspecific(message_key, NULL);
	return kept;
}

/* Makes the kept one the thread's error again. */
void maltc_restore_error(void *kept)
{
	free(pthread_getspecific(message_key));
	pthread_setspecific(message_key, kept);
}

const char *malt_errmsg(void)
{
	struct message *m = pthread_getspecific(message_key);
	return m == NULL ? "" : m->text;
}

void malt_error(malt_error_info *info)
{
	malt_error_info all = {.code = MALT_OK, .rank = -1, .message = "", .call = "", .what = "", .where = "", .advice = "", .topic = "", .why = ""};
	const char **strings[STRINGS] = {&all.message, &all.call, &all.what, &all.where, &all.advice, &all.topic, &all.why};
	struct message *m = pthread_getspecific(message_key);
	if (m != NULL) {
		all.code = m->code;
		all.rank = m->rank;
		all.death = m->death;
		const char *next = m->text;
		for (int i = 0; i < STRINGS; i++) {
			*strings[i] = next;
			next += strlen(next) + 1;
		}
	}
	all.size = info->size < sizeof all ? info->size : sizeof all;
	memcpy(info, &all, all.size);
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

static struct user_mapping *user_mappings;
static const size_t *user_mappings_used;

void maltc_user_mappings(struct user_mapping *table, const size_t *used)
{
	user_mappings = table;
	user_mappings_used = used;
}

/* The child keeps the array, and loses the way into the memory of its parent. */
static void make_private(void *address, size_t bytes, int fd)
{
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_NORESERVE;
	if (fd >= 0 && mmap(address, bytes, prot, flags | MAP_FIXED, fd, 0) != MAP_FAILED)
		return;
	void *copy = mmap(NULL, bytes, prot, flags | MAP_ANONYMOUS, -1, 0);
	if (copy != MAP_FAILED) {
		memcpy(copy, address, bytes);
		if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED)
			return;
	}
	mprotect(address, bytes, PROT_READ); /* better a fault than to write into the parent's */
}

static void in_child(void)
{
	maltc_forked = 1;
	size_t used = user_mappings_used == NULL ? 0 : __atomic_load_n(user_mappings_used, __ATOMIC_RELAXED);
	for (size_t i = 0; i < used; i++) {
		struct user_mapping *m = &user_mappings[i];
		size_t bytes = __atomic_load_n(&m->bytes, __ATOMIC_ACQUIRE);
		if (bytes > 0)
			make_private((void *)m->address, bytes, m->descriptor - 1);
	}
	user_mappings_used = NULL; /* they are the child's own from now on */
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
	MALTC_SAY(MALT_EFORK, "this process was forked from one that had loaded MALT", "Go's threads do not survive a fork",
	          "Start workers with exec (in Python: \"spawn\" or \"forkserver\"), or do not use MALT in them.");
	return MALT_EFORK;
}
