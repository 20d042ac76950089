/* What the test programs share: a check that fails ends the program with a
 * sentence that says where. */
#ifndef CHECK_H
#define CHECK_H

#include <malt.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAIL(...) \
	do { \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr); \
		exit(1); \
	} while (0)

#define CHECK(condition) \
	do { \
		if (!(condition)) \
			FAIL("not so: %s", #condition); \
	} while (0)

/* The call succeeds. */
#define OK(call) \
	do { \
		int64_t got_ = (call); \
		if (got_ != MALT_OK) \
			FAIL("%s = %d: %s", #call, (int)got_, malt_errmsg()); \
	} while (0)

/* The call fails with code, and its message has words in it. */
#define FAILS(code, words, call) \
	do { \
		int64_t got_ = (call); \
		if (got_ != (code)) \
			FAIL("%s = %d, want %s; message: %s", #call, (int)got_, #code, malt_errmsg()); \
		if (strstr(malt_errmsg(), (words)) == NULL) \
			FAIL("%s: the message is \"%s\", want \"%s\" in it", #call, malt_errmsg(), (words)); \
	} while (0)

/* The environment is the driver's word, not the job's: which case, which role. */
static inline const char *word(const char *name)
{
	const char *value = getenv(name);
	if (value == NULL)
		FAIL("%s is not set", name);
	return value;
}

static inline malt_handle vector(uint64_t count, int32_t dtype, const char *options)
{
	malt_array a = {.count = count, .dtype = dtype};
	malt_handle v = 0;
	OK(malt_vector_new(&a, 1, NULL, options, -1, &v));
	return v;
}

static inline void *memory(malt_handle v)
{
	void *p = NULL;
	OK(malt_object_data(v, 0, &p, NULL));
	return p;
}

/* How many descriptors lead to memory, sockets or processes: all of MALT's, and
 * none of a test's own. */
static inline int open_descriptors(void)
{
	int n = 0;
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	CHECK(d != NULL);
	while ((e = readdir(d)) != NULL) {
		char path[512], to[256];
		snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
		ssize_t len = readlink(path, to, sizeof to - 1);
		if (len > 0) {
			to[len] = 0;
			n += strstr(to, "memfd:") != NULL || strncmp(to, "socket:", 7) == 0 || strstr(to, "pidfd") != NULL;
		}
	}
	closedir(d);
	return n;
}

/* After malt_finalize, all memory being unmapped. */
static inline void nothing_left(void)
{
	char line[1024];
	CHECK(open_descriptors() == 0);
	FILE *maps = fopen("/proc/self/maps", "r");
	CHECK(maps != NULL);
	while (fgets(line, sizeof line, maps) != NULL)
		if (strstr(line, "memfd:") != NULL)
			FAIL("still mapped: %s", line);
	fclose(maps);
}

#endif
