/*
 * What the C files offer to each other and to the Go side. The names begin with
 * maltc_, and are not in malt.h, so the library does not export them.
 */
#ifndef MALT_INTERNAL_H
#define MALT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "malt.h"

/* What Go's functions only read, of which cgo knows no const. */
typedef const char *maltc_text;
typedef const void *maltc_bytes;
typedef const int32_t *maltc_ranks;
typedef const int64_t *maltc_rows;
typedef const uint64_t *maltc_ids;
typedef const malt_array *maltc_arrays;
typedef const malt_error_info *maltc_because;

/* Keeps an error of the calling thread for malt_errmsg and malt_error. text has n
 * bytes: the strings of malt_error_info in their order, with a 0 between two of
 * them; those at the end may be missing. */
void maltc_set_error(int32_t code, int32_t rank, int32_t death, const char *text, size_t n);
void *maltc_keep_error(void);
void maltc_restore_error(void *kept);

/* An error of constant lines: what happened, where, what to do. */
#define MALTC_SAY(code, what, where, advice) \
	do { \
		static const char text[] = "malt: " what "\n" where "\n" advice "\0\0" what "\0" where "\0" advice; \
		maltc_set_error(code, -1, 0, text, sizeof text - 1); \
	} while (0)

/* Whether this process is a forked child; and MALT_EFORK, with its message. */
extern int maltc_forked;
int32_t maltc_refuse_child(void);

/* Looks for the descriptors without which Go's runtime ends the process; and MALT_EIO,
 * with its message, if they have been closed since. */
void maltc_find_poller(void);
int32_t maltc_descriptors_closed(void);

/* The lines of that error, for a process that ends over it. */
const char *maltc_last_words(void);

/* malloc, but NULL where cgo's own ends the process. Free with free. */
void *maltc_alloc(size_t n);

/* Remembers who this rank is, for malt_rank and the like; a forked child reads
 * what was remembered last. maltc_left forgets it. */
void maltc_joined(int32_t rank, int32_t size, int32_t local_rank, int64_t generation);
void maltc_viewed(int64_t generation);
void maltc_left(void);

/* Sleeps until a futex call wakes who sleeps on word, at once where word is not
 * seen, for ns nanoseconds at most. 1: the function of malt_look_up wants the wait
 * to end. */
int32_t maltc_sleep(void *word, uint32_t seen, int64_t ns);

/* Calls the function of malt_look_up. 1: it, or the end of the process, wants the wait
 * to end. */
int32_t maltc_look(void);

/* After how many ms a wait calls maltc_report, which calls the function of
 * malt_on_long_wait; -1: there is none. */
int64_t maltc_patience(void);
int32_t maltc_report(int64_t waited_ms, int64_t left_ms);

/* Calls the function of malt_on_death. */
void maltc_news(int32_t rank, const char *why);

/* Calls the function of malt_on_trouble. */
void maltc_troubled(const struct malt_trouble *trouble);

/* Sleeps, whatever comes. */
void maltc_nap(int64_t ns);

/* Whether the process is in the handler of malt_finalize_at_exit: waits end. */
int maltc_ending(void);

/* Whether a wait of this thread has to end for that: not one of the thread that leaves the job, which may have to
 * pass on changes until the others are done, too. */
int maltc_ends(void);

/* Where Go keeps the descriptors that a forked child must close: n atomic
 * int32_t, each a descriptor + 1, or 0. */
void maltc_descriptors(void *table, size_t n);

/* Where Go keeps the shared memory that users hold, mem.UserMapping: a forked child
 * makes it private. */
struct user_mapping {
	uintptr_t address;
	uintptr_t bytes;    /* 0: none */
	int32_t descriptor; /* of the memory, + 1, or 0 */
};
void maltc_user_mappings(struct user_mapping *table, const size_t *used);

#endif
