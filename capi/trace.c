/*
 * Memory in which other processes of this user see what a rank does: `malt top` finds its
 * descriptor in /proc. So it is in no file system, it goes with the process, and the kernel
 * refuses other users.
 */
#define _GNU_SOURCE
#include "malt_internal.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* So many bytes of zeroes, and their descriptor; NULL where the system gives none. A forked
 * child does not have them: it is not the rank. */
void *maltc_trace(size_t bytes, int *fd)
{
	*fd = syscall(SYS_memfd_create, "malt-rank", 1 /* MFD_CLOEXEC */);
	if (*fd < 0)
		return NULL;
	void *p = MAP_FAILED;
	if (ftruncate(*fd, bytes) == 0)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (p == MAP_FAILED || madvise(p, bytes, MADV_DONTFORK) != 0) {
		close(*fd);
		return NULL;
	}
	return p;
}

/* Gives the memory back. Calls that are under way may still write there, for nobody. */
void maltc_trace_end(void *p, size_t bytes, int fd)
{
	mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	close(fd);
}

int64_t maltc_monotonic(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
