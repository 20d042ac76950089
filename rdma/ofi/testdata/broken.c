/* The system's libfabric, whose completion queues fail for good after MALT_TEST_READS reads. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../abi.h"

#define COPY(calls) memcpy(malloc((calls)->size), (calls), (calls)->size)

static struct ofi_fabric_calls fabric;
static struct ofi_domain_calls domain;
static struct ofi_cq_calls cq;
static int (*open_fabric)(struct ofi_fabric_attr *, struct ofi_fabric **, void *);
static long left;

static ssize_t fail(struct ofi_cq *q, void *entries, size_t count)
{
	return __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) >= 0 ? cq.read(q, entries, count) : -EIO;
}

static int tell(struct ofi_fabric *f, ofi_fid **queues, int count) /* that there is something to read */
{
	return __atomic_load_n(&left, __ATOMIC_RELAXED) > 0 ? fabric.trywait(f, queues, count) : -EAGAIN;
}

static int open_cq(struct ofi_domain *d, struct ofi_cq_attr *a, struct ofi_cq **q, void *context)
{
	int r = domain.cq_open(d, a, q, context);
	if (r == 0) {
		cq = *(*q)->calls;
		struct ofi_cq_calls *calls = COPY((*q)->calls);
		calls->read = fail;
		(*q)->calls = calls;
	}
	return r;
}

static int open_domain(struct ofi_fabric *f, struct ofi_info *i, struct ofi_domain **d, void *context)
{
	int r = fabric.domain(f, i, d, context);
	if (r == 0) {
		domain = *(*d)->calls;
		struct ofi_domain_calls *calls = COPY((*d)->calls);
		calls->cq_open = open_cq;
		(*d)->calls = calls;
	}
	return r;
}

int fi_fabric(struct ofi_fabric_attr *a, struct ofi_fabric **f, void *context)
{
	int r = open_fabric(a, f, context);
	if (r == 0 && strstr(a->prov_name, "ofi_rxm") != NULL) { /* and not what it opens itself */
		fabric = *(*f)->calls;
		struct ofi_fabric_calls *calls = COPY((*f)->calls);
		calls->domain = open_domain;
		calls->trywait = tell;
		(*f)->calls = calls;
	}
	return r;
}

/* Everything else is found in the library that this one is linked with. */
__attribute__((constructor)) static void begin(void)
{
	*(void **)&open_fabric = dlsym(RTLD_NEXT, "fi_fabric");
	left = atol(getenv("MALT_TEST_READS"));
}
