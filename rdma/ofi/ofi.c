#include "ofi.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Before glibc 2.34 these were in libdl, which a program need not have. */
#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlerror

enum { API = OFI_VERSION(1, 14), EVENTS = 1024, EVENTS_FOR_EACH = 64, SIGNALS = 64 };

/* ---- what libraries may change, and must not */

struct kept {
	struct sigaction handlers[SIGNALS + 1];
	sigset_t blocked;
};

/* Also threads that libraries start now get no signals of this process. */
static void keep(struct kept *k)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &k->blocked);
	for (int s = 1; s <= SIGNALS; s++)
		sigaction(s, NULL, &k->handlers[s]); /* fails for two, as below */
}

static void restore(const struct kept *k)
{
	struct sigaction now;
	for (int s = 1; s <= SIGNALS; s++)
		if (sigaction(s, NULL, &now) == 0 &&
		    (now.sa_sigaction != k->handlers[s].sa_sigaction || now.sa_flags != k->handlers[s].sa_flags))
			sigaction(s, &k->handlers[s], NULL);
	pthread_sigmask(SIG_SETMASK, &k->blocked, NULL);
}

/* ---- opening */

static int load(struct maltc_ofi *o, const char *path, char *text, size_t bytes)
{
	if (dlopen == NULL || dlsym == NULL || dlerror == NULL) {
		snprintf(text, bytes, "this program cannot load libraries");
		return -ENOSYS;
	}
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* for good: its threads may outlive what is opened */
	const struct {
		const char *name;
		void *to;
	} symbols[] = {{"fi_getinfo", &o->getinfo},       {"fi_freeinfo", &o->freeinfo}, {"fi_dupinfo", &o->dupinfo},
	               {"fi_fabric", &o->fabric_open}, {"fi_strerror", &o->strerror}, {"fi_version", &o->version}};
	for (size_t i = 0; library != NULL && i < sizeof symbols / sizeof symbols[0]; i++) {
		void *symbol = dlsym(library, symbols[i].name);
		if (symbol == NULL)
			library = NULL;
		else
			memcpy(symbols[i].to, &symbol, sizeof symbol);
	}
	if (library != NULL)
		return 0;
	const char *why = dlerror();
	snprintf(text, bytes, "%s", why != NULL ? why : path);
	return -ENOENT;
}

/* Asks for an endpoint without connections that writes, and tells its peers with 32 bits. */
static int ask(struct maltc_ofi *o, const char *provider)
{
	struct ofi_info *hints = o->dupinfo(NULL);
	if (hints == NULL)
		return -ENOMEM;
	hints->caps = OFI_RMA | OFI_MSG | OFI_WRITE | OFI_REMOTE_WRITE | OFI_SEND | OFI_RECV;
	hints->mode = OFI_CONTEXT | OFI_CONTEXT2;
	hints->ep_attr->type = OFI_EP_RDM;
	hints->domain_attr->mr_mode = OFI_MR_LOCAL | OFI_MR_VIRT_ADDR | OFI_MR_ALLOCATED | OFI_MR_PROV_KEY | OFI_MR_ENDPOINT;
	hints->domain_attr->threading = OFI_THREAD_SAFE;
	hints->domain_attr->cq_data_size = 4;
	hints->fabric_attr->prov_name = strdup(provider);
	uint32_t version = o->version();
	int r = o->getinfo(version < API ? version : API, NULL, NULL, 0, hints, &o->info);
	o->freeinfo(hints);
	return r;
}

static int open_cq(struct maltc_ofi *o)
{
	struct ofi_cq_attr a = {.size = o->events, .format = OFI_CQ_FORMAT_DATA, .wait_obj = OFI_WAIT_FD};
	int r = o->domain->calls->cq_open(o->domain, &a, &o->cq, NULL);
	if (r == 0 && o->cq->fid.calls->control(&o->cq->fid, OFI_GETWAIT, &o->fd) == 0)
		return 0;
	o->fd = -1;
	if (r == 0)
		return 0;
	a.wait_obj = OFI_WAIT_NONE;
	return o->domain->calls->cq_open(o->domain, &a, &o->cq, NULL);
}

static const char *open_all(struct maltc_ofi *o, const char *provider, uint32_t peers, int *r)
{
	if ((o->woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
		*r = -errno;
		return "eventfd";
	}
	if ((*r = ask(o, provider)) != 0)
		return "fi_getinfo";
	if ((*r = o->fabric_open(o->info->fabric_attr, &o->fabric, NULL)) != 0)
		return "fi_fabric";
	if ((*r = o->fabric->calls->domain(o->fabric, o->info, &o->domain, NULL)) != 0)
		return "fi_domain";
	struct ofi_av_attr av = {.type = o->info->domain_attr->av_type, .count = peers};
	if ((*r = o->domain->calls->av_open(o->domain, &av, &o->av, NULL)) != 0)
		return "fi_av_open";
	if ((*r = open_cq(o)) != 0)
		return "fi_cq_open";
	if ((*r = o->domain->calls->endpoint(o->domain, o->info, &o->ep, NULL)) != 0)
		return "fi_endpoint";
	const struct ofi_calls *ep = o->ep->fid.calls;
	if ((*r = ep->bind(&o->ep->fid, &o->av->fid, 0)) != 0 ||
	    (*r = ep->bind(&o->ep->fid, &o->cq->fid, OFI_SEND | OFI_RECV)) != 0)
		return "fi_ep_bind";
	if ((*r = ep->control(&o->ep->fid, OFI_ENABLE, NULL)) != 0)
		return "fi_enable";
	o->address_bytes = sizeof o->address;
	if ((*r = o->ep->cm->getname(&o->ep->fid, o->address, &o->address_bytes)) != 0)
		return "fi_getname";
	return NULL;
}

struct maltc_ofi *maltc_ofi_open(const char *path, const char *provider, uint32_t peers, const char **failed, int *error,
                                 char *text, size_t bytes)
{
	/* With a cache a region that was closed can still be written into. rxe refuses queues for few peers. And no
	   message needs a buffer. */
	static const char *const names[] = {"FI_MR_CACHE_MAX_COUNT", "FI_UNIVERSE_SIZE", "FI_OFI_RXM_BUFFER_SIZE"};
	const uint32_t values[] = {0, peers < 8 ? 8 : peers, 1024};
	char value[16];
	int preset = 0; /* by a bit each, what the user has not set */
	struct kept kept;
	struct maltc_ofi *o = calloc(1, sizeof *o);
	*failed = "calloc";
	*error = -ENOMEM;
	if (o == NULL)
		return NULL;
	o->events = EVENTS + EVENTS_FOR_EACH * peers;
	o->fd = o->woken = -1;
	keep(&kept);
	for (int i = 0; i < 3; i++) {
		snprintf(value, sizeof value, "%u", values[i]);
		preset |= (getenv(names[i]) == NULL && setenv(names[i], value, 1) == 0) << i;
	}
	*failed = NULL;
	*error = load(o, path, text, bytes);
	if (*error == 0 && (*failed = open_all(o, provider, peers, error)) != NULL)
		snprintf(text, bytes, "%s", *error == -ENODATA ? "no such provider, or no device for it" : o->strerror(-*error));
	for (int i = 0; i < 3; i++)
		if (preset >> i & 1)
			unsetenv(names[i]);
	restore(&kept);
	if (*error != 0) {
		maltc_ofi_close(o);
		return NULL;
	}
	o->library = o->version();
	o->slots = o->info->tx_attr->size < MALTC_OFI_WRITES ? o->info->tx_attr->size : MALTC_OFI_WRITES;
	return o;
}

const char *maltc_ofi_error(const struct maltc_ofi *o, int error) { return o->strerror(error < 0 ? -error : error); }

/* Closes what fid is, if it is anything; the first error stays. */
static void shut(ofi_fid *fid, int *r)
{
	int e = fid == NULL ? 0 : fid->calls->close(fid);
	if (*r == 0)
		*r = e;
}

int maltc_ofi_close(struct maltc_ofi *o)
{
	int r = 0;
	shut((ofi_fid *)o->ep, &r);
	shut((ofi_fid *)o->av, &r);
	shut((ofi_fid *)o->cq, &r);
	shut((ofi_fid *)o->domain, &r);
	shut((ofi_fid *)o->fabric, &r);
	if (o->info != NULL)
		o->freeinfo(o->info);
	if (o->woken >= 0)
		close(o->woken);
	free(o);
	return r;
}

/* ---- at work */

int maltc_ofi_connect(struct maltc_ofi *o, const void *address, uint64_t *peer)
{
	int n = o->av->calls->insert(o->av, address, 1, peer, 0, NULL);
	return n == 1 ? 0 : n < 0 ? n : -EADDRNOTAVAIL;
}

int maltc_ofi_register(struct maltc_ofi *o, void *p, size_t n, int target, uint64_t wanted_key, struct ofi_mr **mr,
                       uint64_t *address, uint64_t *key)
{
	int mode = o->info->domain_attr->mr_mode;
	int r = o->domain->mr->reg(&o->domain->fid, p, n, target ? OFI_REMOTE_WRITE : OFI_WRITE, 0, wanted_key, 0, mr, NULL);
	if (r != 0)
		return r;
	if (mode & OFI_MR_ENDPOINT && ((r = (*mr)->fid.calls->bind(&(*mr)->fid, &o->ep->fid, 0)) != 0 ||
	                               (r = (*mr)->fid.calls->control(&(*mr)->fid, OFI_ENABLE, NULL)) != 0)) {
		(*mr)->fid.calls->close(&(*mr)->fid);
		return r;
	}
	*address = mode & OFI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)p : 0;
	*key = (*mr)->key;
	return 0;
}

int maltc_ofi_unregister(struct ofi_mr *mr) { return mr->fid.calls->close(&mr->fid); }

int maltc_ofi_write(struct maltc_ofi *o, uint32_t slot, const void *p, size_t n, struct ofi_mr *mr, uint64_t peer,
                    uint64_t address, uint64_t key, uint32_t number)
{
	const struct ofi_rma_calls *rma = o->ep->rma;
	ssize_t r = number == 0 ? rma->write(o->ep, p, n, mr->desc, peer, address, key, &o->contexts[slot])
	                        : rma->writedata(o->ep, p, n, mr->desc, number, peer, address, key, &o->contexts[slot]);
	return r == -EAGAIN ? MALTC_OFI_BUSY : (int)r;
}

/* The write that a completion is of, or -1. */
static int32_t slot(const struct maltc_ofi *o, const void *context)
{
	const struct ofi_context *c = context;
	return c >= o->contexts && c < o->contexts + MALTC_OFI_WRITES ? (int32_t)(c - o->contexts) : -1;
}

int maltc_ofi_poll(struct maltc_ofi *o, struct maltc_ofi_event *events, int most)
{
	struct ofi_cq_entry entries[64];
	struct ofi_cq_error e = {0};
	int n = 0, limit = most < 64 ? most : 64;
	ssize_t r = o->cq->calls->read(o->cq, entries, limit);
	if (limit == 0)
		return 0;
	int failed = r == -OFI_EAVAIL; /* one write */
	if (failed)
		r = o->cq->calls->readerr(o->cq, &e, 0);
	int broken = r < 0 && r != -EAGAIN ? (int)-r : 0;
	if (__atomic_exchange_n(&o->broken, broken, __ATOMIC_RELAXED) == 0 && broken != 0) {
		events[0] = (struct maltc_ofi_event){.slot = -1, .error = broken};
		return 1;
	}
	if (failed && r > 0) {
		events[0] = (struct maltc_ofi_event){.slot = slot(o, e.context), .error = e.err != 0 ? e.err : EIO};
		return 1;
	}
	for (ssize_t i = 0; i < r; i++) {
		int told = (entries[i].flags & OFI_REMOTE_CQ_DATA) != 0;
		struct maltc_ofi_event found = {.slot = told ? -1 : slot(o, entries[i].context),
		                                .number = told ? (uint32_t)entries[i].data : 0};
		if (found.slot >= 0 || told)
			events[n++] = found;
	}
	return n;
}

void maltc_ofi_wait(struct maltc_ofi *o, int milliseconds)
{
	struct pollfd fds[] = {{.fd = o->woken, .events = POLLIN}, {.fd = o->fd, .events = POLLIN}};
	ofi_fid *cq = &o->cq->fid;
	nfds_t of = 2;
	if (__atomic_load_n(&o->broken, __ATOMIC_RELAXED) != 0) {
		of = 1; /* fd may be readable for good */
	} else if (o->fd < 0) {
		milliseconds = milliseconds < 1 ? milliseconds : 1; /* nothing tells: look again soon */
	} else if (o->fabric->calls->trywait(o->fabric, &cq, 1) != 0) {
		return; /* there is something */
	}
	poll(fds, of, milliseconds);
}
