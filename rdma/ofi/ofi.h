/*
 * A libfabric endpoint that writes into the memory of others. Functions that return int return 0, or
 * what libfabric says, which maltc_ofi_error puts in words.
 */
#ifndef MALT_OFI_H
#define MALT_OFI_H

#include <stddef.h>
#include <stdint.h>

#include "abi.h"

enum { MALTC_OFI_ADDRESS = 256, MALTC_OFI_WRITES = 128, MALTC_OFI_BUSY = 1 };

struct maltc_ofi {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct ofi_info *,
	               struct ofi_info **);
	void (*freeinfo)(struct ofi_info *);
	struct ofi_info *(*dupinfo)(const struct ofi_info *);
	int (*fabric_open)(struct ofi_fabric_attr *, struct ofi_fabric **, void *context);
	const char *(*strerror)(int);
	uint32_t (*version)(void);

	struct ofi_info *info;
	struct ofi_fabric *fabric;
	struct ofi_domain *domain;
	struct ofi_av *av;
	struct ofi_cq *cq;
	struct ofi_ep *ep;
	struct ofi_context contexts[MALTC_OFI_WRITES]; /* by slot: libfabric's, while its write is under way */
	int fd, woken; /* fd: readable when there are completions, or -1; woken: an eventfd, which ends maltc_ofi_wait */
	int broken;    /* why completions could not be read the last time, or 0; atomic */

	uint32_t library; /* its version: major << 16 | minor */
	uint32_t slots;   /* writes at once */
	uint32_t events;  /* that are kept until polled */
	size_t address_bytes;
	unsigned char address[MALTC_OFI_ADDRESS];
};

/* What has happened: write number slot has ended, or failed; number has come; or, with neither, error. */
struct maltc_ofi_event {
	int32_t slot, error; /* slot -1: of no write */
	uint32_t number;     /* 0: none */
};

/*
 * Loads libfabric and opens what provider names. On failure *failed is the step, NULL if the library is
 * not there, *error what libfabric says, and text says why. To be called once at a time: for its duration it sets variables of the
 * environment. What libraries do to the handlers of signals is undone.
 */
struct maltc_ofi *maltc_ofi_open(const char *path, const char *provider, uint32_t peers, const char **failed, int *error,
                                 char *text, size_t bytes);
const char *maltc_ofi_error(const struct maltc_ofi *, int error);
/* No region is open, no write in flight, no event left to poll. */
int maltc_ofi_close(struct maltc_ofi *);

int maltc_ofi_connect(struct maltc_ofi *, const void *address, uint64_t *peer);
int maltc_ofi_register(struct maltc_ofi *, void *p, size_t n, int target, uint64_t wanted_key, struct ofi_mr **,
                       uint64_t *address, uint64_t *key);
int maltc_ofi_unregister(struct ofi_mr *);
/* MALTC_OFI_BUSY: poll, then again. slot is one that no write has. */
int maltc_ofi_write(struct maltc_ofi *, uint32_t slot, const void *p, size_t n, struct ofi_mr *, uint64_t peer,
                    uint64_t address, uint64_t key, uint32_t number);
/* That completions cannot be read is told once, as an event of no write. */
int maltc_ofi_poll(struct maltc_ofi *, struct maltc_ofi_event *, int most);
/* Until there may be something to poll, woken is readable, or so long. */
void maltc_ofi_wait(struct maltc_ofi *, int milliseconds);

#endif
