/*
 * Whether the program has closed descriptors that are not its own, as by closefrom.
 * Go's runtime ends the process, with a trace of its own, as soon as it finds the
 * epoll descriptor closed that it sleeps in, or the eventfd that wakes it. So this is
 * asked in C, before a call that makes the runtime use them; closed.go has the words
 * for a runtime that was faster.
 *
 * The kernel lists what an epoll descriptor watches, each with the number that was
 * given with it: for the runtime's eventfd that is the address of a variable of this
 * library, and what is closed is watched no longer. Without /proc nothing is known.
 */
#include "malt.h"
#include "malt_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The linker's: where this library begins and ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static char poller[16]; /* the runtime's epoll descriptor; "": not known */

static uintptr_t hexadecimal(const char *s)
{
	static const char digits[] = "0123456789abcdef";
	uintptr_t v = 0;
	for (const char *d; *s != 0 && (d = strchr(digits, *s)) != NULL; s++)
		v = v << 4 | (uintptr_t)(d - digits);
	return v;
}

/* Whether fd is an epoll descriptor that watches the runtime's eventfd; -1: it cannot be told. */
static int wakes_go(const char *fd)
{
	char text[300];
	int found = 0;
	snprintf(text, sizeof text, "/proc/self/fdinfo/%s", fd);
	FILE *f = fopen(text, "re");
	if (f == NULL)
		return errno == ENOENT ? 0 : -1;
	while (!found && fgets(text, sizeof text, f) != NULL) {
		const char *data = strncmp(text, "tfd:", 4) == 0 ? strstr(text, "data:") : NULL;
		if (data != NULL) {
			uintptr_t at = hexadecimal(data + 5 + strspn(data + 5, " "));
			found = at >= (uintptr_t)__ehdr_start && at < (uintptr_t)_end;
		}
	}
	fclose(f);
	return found;
}

void maltc_find_poller(void)
{
	DIR *d = opendir("/proc/self/fd");
	poller[0] = 0;
	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
		if (strlen(e->d_name) < sizeof poller && wakes_go(e->d_name) == 1)
			strcpy(poller, e->d_name);
	if (d != NULL)
		closedir(d);
}

#define WHAT "this process closed file descriptors that MALT uses"
#define WHERE "os.closerange, closefrom and the like also close the descriptors of libraries"
#define ADVICE "Close only descriptors that your program opened, or close them before malt.init. The job cannot continue."

const char *maltc_last_words(void) { return "malt: " WHAT "\n" WHERE "\n" ADVICE "\n"; }

int32_t maltc_descriptors_closed(void)
{
	if (poller[0] == 0 || wakes_go(poller) != 0)
		return MALT_OK;
	MALTC_SAY(MALT_EIO, WHAT, WHERE, ADVICE);
	return MALT_EIO;
}
