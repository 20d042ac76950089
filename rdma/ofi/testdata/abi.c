/*
 * Compiles if abi.h says what libfabric's headers say: the size of what this side makes, where each
 * field lies and how large it is, values; and if their functions take what ofi.c gives them.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>

#include "../abi.h"

#define SAME(a, b) _Static_assert((a) == (b), #a " is not " #b)
#define ROOM(ours, theirs) _Static_assert(sizeof(struct ours) >= sizeof(struct theirs), #ours " is too small")
#define FIELD(ours, a, theirs, b) \
	SAME(offsetof(struct ours, a), offsetof(struct theirs, b)); \
	SAME(sizeof(((struct ours *)0)->a), sizeof(((struct theirs *)0)->b))
#define F(of, field) FIELD(o##of, field, of, field)

SAME(OFI_VERSION(1, 14), FI_VERSION(1, 14));
SAME(OFI_MSG, FI_MSG);
SAME(OFI_RMA, FI_RMA);
SAME(OFI_WRITE, FI_WRITE);
SAME(OFI_RECV, FI_RECV);
SAME(OFI_SEND, FI_SEND);
SAME(OFI_REMOTE_WRITE, FI_REMOTE_WRITE);
SAME(OFI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA);
SAME(OFI_MR_LOCAL, FI_MR_LOCAL);
SAME(OFI_MR_VIRT_ADDR, FI_MR_VIRT_ADDR);
SAME(OFI_MR_ALLOCATED, FI_MR_ALLOCATED);
SAME(OFI_MR_PROV_KEY, FI_MR_PROV_KEY);
SAME(OFI_MR_ENDPOINT, FI_MR_ENDPOINT);
SAME(OFI_CONTEXT, FI_CONTEXT);
SAME(OFI_CONTEXT2, FI_CONTEXT2);
SAME(OFI_EP_RDM, (int)FI_EP_RDM);
SAME(OFI_THREAD_SAFE, (int)FI_THREAD_SAFE);
SAME(OFI_CQ_FORMAT_DATA, (int)FI_CQ_FORMAT_DATA);
SAME(OFI_WAIT_NONE, (int)FI_WAIT_NONE);
SAME(OFI_WAIT_FD, (int)FI_WAIT_FD);
SAME(OFI_GETWAIT, (int)FI_GETWAIT);
SAME(OFI_ENABLE, (int)FI_ENABLE);
SAME(OFI_EAVAIL, (int)FI_EAVAIL);

F(fi_tx_attr, caps);
F(fi_tx_attr, comp_order);
F(fi_tx_attr, inject_size);
F(fi_tx_attr, size);
F(fi_ep_attr, type);
F(fi_ep_attr, protocol_version);
F(fi_ep_attr, max_msg_size);
F(fi_domain_attr, domain);
F(fi_domain_attr, name);
F(fi_domain_attr, threading);
F(fi_domain_attr, av_type);
F(fi_domain_attr, mr_mode);
F(fi_domain_attr, mr_key_size);
F(fi_domain_attr, cq_data_size);
F(fi_fabric_attr, fabric);
F(fi_fabric_attr, name);
F(fi_fabric_attr, prov_name);
F(fi_info, next);
F(fi_info, caps);
F(fi_info, mode);
F(fi_info, addr_format);
F(fi_info, src_addrlen);
F(fi_info, handle);
F(fi_info, tx_attr);
F(fi_info, ep_attr);
F(fi_info, domain_attr);
F(fi_info, fabric_attr);

ROOM(ofi_cq_attr, fi_cq_attr);
F(fi_cq_attr, size);
F(fi_cq_attr, flags);
F(fi_cq_attr, format);
F(fi_cq_attr, wait_obj);
F(fi_cq_attr, signaling_vector);
F(fi_cq_attr, wait_cond);
F(fi_cq_attr, wait_set);
ROOM(ofi_av_attr, fi_av_attr);
F(fi_av_attr, type);
F(fi_av_attr, rx_ctx_bits);
F(fi_av_attr, count);
F(fi_av_attr, ep_per_node);
F(fi_av_attr, name);
F(fi_av_attr, map_addr);
F(fi_av_attr, flags);
SAME(sizeof(struct ofi_cq_entry), sizeof(struct fi_cq_data_entry));
FIELD(ofi_cq_entry, context, fi_cq_data_entry, op_context);
FIELD(ofi_cq_entry, flags, fi_cq_data_entry, flags);
FIELD(ofi_cq_entry, len, fi_cq_data_entry, len);
FIELD(ofi_cq_entry, buf, fi_cq_data_entry, buf);
FIELD(ofi_cq_entry, data, fi_cq_data_entry, data);
ROOM(ofi_cq_error, fi_cq_err_entry);
FIELD(ofi_cq_error, context, fi_cq_err_entry, op_context);
FIELD(ofi_cq_error, flags, fi_cq_err_entry, flags);
FIELD(ofi_cq_error, tag, fi_cq_err_entry, tag);
FIELD(ofi_cq_error, err, fi_cq_err_entry, err);
FIELD(ofi_cq_error, prov_errno, fi_cq_err_entry, prov_errno);
FIELD(ofi_cq_error, err_data, fi_cq_err_entry, err_data);
FIELD(ofi_cq_error, err_data_size, fi_cq_err_entry, err_data_size);
SAME(sizeof(struct ofi_context), sizeof(struct fi_context2));

FIELD(ofi_fid, class, fid, fclass);
FIELD(ofi_fid, context, fid, context);
FIELD(ofi_fid, calls, fid, ops);
FIELD(ofi_mr, desc, fid_mr, mem_desc);
FIELD(ofi_mr, key, fid_mr, key);
FIELD(ofi_av, calls, fid_av, ops);
FIELD(ofi_cq, calls, fid_cq, ops);
FIELD(ofi_ep, cm, fid_ep, cm);
FIELD(ofi_ep, rma, fid_ep, rma);
FIELD(ofi_domain, calls, fid_domain, ops);
FIELD(ofi_domain, mr, fid_domain, mr);
FIELD(ofi_fabric, calls, fid_fabric, ops);

FIELD(ofi_calls, close, fi_ops, close);
FIELD(ofi_calls, bind, fi_ops, bind);
FIELD(ofi_calls, control, fi_ops, control);
FIELD(ofi_av_calls, insert, fi_ops_av, insert);
FIELD(ofi_cq_calls, read, fi_ops_cq, read);
FIELD(ofi_cq_calls, readerr, fi_ops_cq, readerr);
FIELD(ofi_cm_calls, getname, fi_ops_cm, getname);
FIELD(ofi_rma_calls, write, fi_ops_rma, write);
FIELD(ofi_rma_calls, writedata, fi_ops_rma, writedata);
FIELD(ofi_domain_calls, av_open, fi_ops_domain, av_open);
FIELD(ofi_domain_calls, cq_open, fi_ops_domain, cq_open);
FIELD(ofi_domain_calls, endpoint, fi_ops_domain, endpoint);
FIELD(ofi_mr_calls, reg, fi_ops_mr, reg);
FIELD(ofi_fabric_calls, domain, fi_ops_fabric, domain);
FIELD(ofi_fabric_calls, trywait, fi_ops_fabric, trywait);

void arguments(struct fid *f, struct fid_domain *d, struct fid_av *av, struct fid_cq *cq, struct fid_ep *ep,
               struct fid_fabric *fabric, struct fi_info *info);
void arguments(struct fid *f, struct fid_domain *d, struct fid_av *av, struct fid_cq *cq, struct fid_ep *ep,
               struct fid_fabric *fabric, struct fi_info *info)
{
	uint64_t u = 0;
	size_t n = 0;
	struct fid_mr *mr;
	d->mr->reg(f, info, n, u, u, u, u, &mr, NULL);
	av->ops->insert(av, info, n, &u, u, NULL);
	cq->ops->read(cq, info, n);
	cq->ops->readerr(cq, (struct fi_cq_err_entry *)info, u);
	ep->cm->getname(f, info, &n);
	ep->rma->write(ep, info, n, info, u, u, u, NULL);
	ep->rma->writedata(ep, info, n, info, u, u, u, u, NULL);
	fabric->ops->trywait(fabric, &f, 1);
}
