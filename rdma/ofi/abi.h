/*
 * What MALT uses of libfabric's binary interface, version 1.14, in words of its own; abi_test.go
 * compares each size, offset and value with the headers of the system's libfabric.
 *
 * libfabric's objects begin with an ofi_fid, and have tables of functions. A `void *` in a table, or
 * an array of them, stands for functions that are not used here. A `later` in what MALT makes is room
 * for fields of later versions, which read 0 there; 2.6 has one.
 */
#ifndef MALT_OFI_ABI_H
#define MALT_OFI_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OFI_VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))

/* Capabilities, and flags of registrations and of completions. */
#define OFI_MSG (1ULL << 1)
#define OFI_RMA (1ULL << 2)
#define OFI_WRITE (1ULL << 9)
#define OFI_RECV (1ULL << 10)
#define OFI_SEND (1ULL << 11)
#define OFI_REMOTE_WRITE (1ULL << 13)
#define OFI_REMOTE_CQ_DATA (1ULL << 17)

enum { /* how memory is registered */
	OFI_MR_LOCAL = 1 << 2,
	OFI_MR_VIRT_ADDR = 1 << 4,
	OFI_MR_ALLOCATED = 1 << 5,
	OFI_MR_PROV_KEY = 1 << 6,
	OFI_MR_ENDPOINT = 1 << 9,
};

#define OFI_CONTEXT (1ULL << 59)
#define OFI_CONTEXT2 (1ULL << 52)

enum {
	OFI_EP_RDM = 3,
	OFI_THREAD_SAFE = 1,
	OFI_CQ_FORMAT_DATA = 3,
	OFI_WAIT_NONE = 0,
	OFI_WAIT_FD = 3,
	OFI_GETWAIT = 5,
	OFI_ENABLE = 6,
	OFI_EAVAIL = 259,
};

/* ---- what libfabric is asked for, and has */

struct ofi_tx_attr {
	uint64_t caps, mode, op_flags, msg_order, comp_order;
	size_t inject_size, size;
};

struct ofi_ep_attr {
	uint32_t type, protocol, protocol_version;
	size_t max_msg_size;
};

struct ofi_domain_attr {
	void *domain;
	char *name;
	uint32_t threading, control_progress, data_progress, resource_mgmt, av_type;
	int mr_mode;
	size_t mr_key_size, cq_data_size;
};

struct ofi_fabric_attr {
	void *fabric;
	char *name, *prov_name;
};

struct ofi_info {
	struct ofi_info *next;
	uint64_t caps, mode;
	uint32_t addr_format;
	size_t src_addrlen, dest_addrlen;
	void *src_addr, *dest_addr, *handle;
	struct ofi_tx_attr *tx_attr;
	void *rx_attr;
	struct ofi_ep_attr *ep_attr;
	struct ofi_domain_attr *domain_attr;
	struct ofi_fabric_attr *fabric_attr;
};

struct ofi_cq_attr {
	size_t size;
	uint64_t flags;
	uint32_t format, wait_obj;
	int signaling_vector;
	uint32_t wait_cond;
	void *wait_set;
	uint64_t later[8];
};

struct ofi_av_attr {
	uint32_t type;
	int rx_ctx_bits;
	size_t count, ep_per_node;
	const char *name;
	void *map_addr;
	uint64_t flags;
	uint64_t later[8];
};

struct ofi_cq_entry {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
};

struct ofi_cq_error {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data, tag;
	size_t olen;
	int err, prov_errno;
	void *err_data;
	size_t err_data_size;
	uint64_t later[8];
};

struct ofi_context {
	void *internal[8];
};

/* ---- objects */

typedef struct ofi_fid ofi_fid;

struct ofi_fid {
	size_t class;
	void *context;
	const struct ofi_calls *calls;
};

struct ofi_calls {
	size_t size;
	int (*close)(ofi_fid *);
	int (*bind)(ofi_fid *, ofi_fid *to, uint64_t flags);
	int (*control)(ofi_fid *, int command, void *);
};

struct ofi_mr {
	ofi_fid fid;
	void *desc;
	uint64_t key;
};

struct ofi_av {
	ofi_fid fid;
	const struct ofi_av_calls {
		size_t size;
		int (*insert)(struct ofi_av *, const void *address, size_t count, uint64_t *, uint64_t flags, void *context);
	} *calls;
};

struct ofi_cq {
	ofi_fid fid;
	const struct ofi_cq_calls {
		size_t size;
		ssize_t (*read)(struct ofi_cq *, void *entries, size_t count);
		void *readfrom;
		ssize_t (*readerr)(struct ofi_cq *, struct ofi_cq_error *, uint64_t flags);
	} *calls;
};

struct ofi_ep {
	ofi_fid fid;
	void *ops;
	const struct ofi_cm_calls {
		size_t size;
		void *setname;
		int (*getname)(ofi_fid *, void *address, size_t *bytes);
	} *cm;
	void *msg;
	const struct ofi_rma_calls {
		size_t size;
		void *read[3];
		ssize_t (*write)(struct ofi_ep *, const void *, size_t, void *desc, uint64_t peer, uint64_t address,
		                 uint64_t key, void *context);
		void *other[3];
		ssize_t (*writedata)(struct ofi_ep *, const void *, size_t, void *desc, uint64_t data, uint64_t peer,
		                     uint64_t address, uint64_t key, void *context);
	} *rma;
};

struct ofi_domain {
	ofi_fid fid;
	const struct ofi_domain_calls {
		size_t size;
		int (*av_open)(struct ofi_domain *, struct ofi_av_attr *, struct ofi_av **, void *context);
		int (*cq_open)(struct ofi_domain *, struct ofi_cq_attr *, struct ofi_cq **, void *context);
		int (*endpoint)(struct ofi_domain *, struct ofi_info *, struct ofi_ep **, void *context);
	} *calls;
	const struct ofi_mr_calls {
		size_t size;
		int (*reg)(ofi_fid *, const void *, size_t, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
		           struct ofi_mr **, void *context);
	} *mr;
};

struct ofi_fabric {
	ofi_fid fid;
	const struct ofi_fabric_calls {
		size_t size;
		int (*domain)(struct ofi_fabric *, struct ofi_info *, struct ofi_domain **, void *context);
		void *other[3];
		int (*trywait)(struct ofi_fabric *, ofi_fid **, int count);
	} *calls;
};

#endif
