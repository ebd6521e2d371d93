/* EFA's scalable reliable datagrams (SRD) by libibverbs and efadv.h: the device calls of srd_device.h, and
 * nothing else, since nothing here has EFA to try them. Not run on EFA.
 *
 * What is known of it, from its manual pages, its driver in rdma-core and in the kernel: a queue pair is made
 * by efadv_create_qp_ex, its states need neither path nor peer; every work request names its peer by address
 * handle, queue pair and qkey, and must ask for a completion; a read takes one local piece; there is no
 * shared receive queue; datagrams come without a GRH, are as long as the port's max_msg_sz at most, and are
 * retried while the peer has no buffer, for ever with rnr_retry 7. Completion channels work from
 * Linux 5.16 on. */
#define G_LOG_DOMAIN "transport"

#include <errno.h>
#include <infiniband/efadv.h>
#include <string.h>

#include "backend_real/srd_end.h"
#include "backend_real/srd_status.h"
#include "backend_real/verbs_device.h"
#include "backend_real/verbs_memory.h"
#include "core/error.h"

#define RNR_FOR_EVER    7
#define COMPLETIONS_MAX 32768
#define HOPS            255

struct srd_device {
  struct verbs_device *verbs;
  struct ibv_comp_channel *channel;
  struct ibv_cq *cq;
  struct efadv_device_attr efa;
  struct srd_caps caps;
};

struct srd_qp {
  struct ibv_qp *qp;
  struct ibv_qp_ex *ex;
};

struct srd_address {
  struct ibv_ah *handle;
};

/* One of the two. */
struct srd_memory {
  struct verbs_memory *chunks;
  struct ibv_mr *region;
};

static gpointer set_failed(GError **error, const struct srd_device *device, const char *what, int number)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s: %s", device->verbs->name, what, g_strerror(number));
  return NULL;
}

/* --- the device */

static void efa_close(struct srd_device *device)
{
  if (device->cq && ibv_destroy_cq(device->cq) != 0)
    g_critical("%s: a completion queue is still in use", device->verbs->name);
  if (device->channel)
    ibv_destroy_comp_channel(device->channel);
  verbs_device_close(device->verbs);
  g_free(device);
}

static int query(struct srd_device *device)
{
  struct ibv_device_attr attributes;
  struct ibv_port_attr port;
  int number = efadv_query_device(device->verbs->context, &device->efa, sizeof device->efa);
  if (!number)
    number = ibv_query_device(device->verbs->context, &attributes);
  if (!number)
    number = ibv_query_port(device->verbs->context, device->verbs->nic.port, &port);
  if (number)
    return number;
  device->caps = (struct srd_caps){
      .reads = (device->efa.device_caps & EFADV_DEVICE_ATTR_CAPS_RDMA_READ) != 0,
      .read_max = device->efa.max_rdma_size,
      .datagram_max = port.max_msg_sz,
      .sends_max = device->efa.max_sq_wr,
      .receives_max = device->efa.max_rq_wr,
      .completions_max = (uint32_t)CLAMP(attributes.max_cqe, 0, COMPLETIONS_MAX),
      .gbit_s = (uint32_t)CLAMP(device->verbs->nic.gbit_s, 0, 1e6),
  };
  return 0;
}

static struct srd_device *efa_open(const struct nic *nic, const struct nic_gid *gid, GError **error)
{
  struct verbs_device *verbs = verbs_device_open(nic, gid, error);
  if (!verbs)
    return NULL;
  struct srd_device *device = g_new0(struct srd_device, 1);
  device->verbs = verbs;
  int number = query(device);
  if (!number)
    return device;
  set_failed(error, device, "cannot be asked what it can", number);
  efa_close(device);
  return NULL;
}

static void efa_caps(const struct srd_device *device, struct srd_caps *caps)
{
  *caps = device->caps;
}

static gboolean efa_size(struct srd_device *device, uint32_t completions, GError **error)
{
  device->channel = verbs_device_channel(device->verbs);
  if (!device->channel)
    return set_failed(error, device, "cannot make a completion channel", errno) != NULL;
  device->cq = ibv_create_cq(device->verbs->context, (int)completions, NULL, device->channel, 0);
  return device->cq || set_failed(error, device, "cannot make a completion queue", errno);
}

/* --- memory */

static struct srd_memory *efa_memory_new(struct srd_device *device, const struct memory *memory,
                                         GError **error)
{
  struct verbs_memory *chunks = verbs_memory_new(device->verbs, memory, error);
  if (!chunks)
    return NULL;
  struct srd_memory *m = g_new0(struct srd_memory, 1);
  m->chunks = chunks;
  return m;
}

static void efa_memory_free(struct srd_memory *memory)
{
  verbs_memory_free(memory->chunks);
  if (memory->region && ibv_dereg_mr(memory->region) != 0)
    g_error("memory stays open to the device: %m");
  g_free(memory);
}

static void efa_memory_piece(const struct srd_memory *memory, uint64_t at, uint32_t bytes,
                             struct srd_piece_at *piece)
{
  struct ibv_sge sge[VERBS_SGES];
  verbs_memory_pieces(memory->chunks, at, bytes, sge);
  *piece = (struct srd_piece_at){sge[0].addr, sge[0].length, sge[0].lkey};
}

/* EFA without RDMA READ refuses the right to remote reads. */
static struct srd_memory *efa_region_new(struct srd_device *device, uint8_t *base, uint64_t bytes,
                                         gboolean remote, uint32_t *local_key, uint32_t *key, GError **error)
{
  struct ibv_mr *mr = remote ? verbs_memory_expose(device->verbs, base, bytes, error)
                             : ibv_reg_mr(device->verbs->pd, base, bytes, IBV_ACCESS_LOCAL_WRITE);
  if (!mr && !remote)
    set_failed(error, device, "cannot register memory (see ulimit -l)", errno);
  if (!mr)
    return NULL;
  struct srd_memory *m = g_new0(struct srd_memory, 1);
  m->region = mr;
  *local_key = mr->lkey;
  *key = mr->rkey;
  return m;
}

/* --- queue pairs */

static int bring_up(const struct srd_device *device, struct ibv_qp *qp, uint32_t qkey)
{
  gboolean retries = (device->efa.device_caps & EFADV_DEVICE_ATTR_CAPS_RNR_RETRY) != 0;
  struct ibv_qp_attr attributes = {
      .qp_state = IBV_QPS_INIT, .port_num = device->verbs->nic.port, .qkey = qkey};
  int number = ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attributes = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
  if (!number)
    number = ibv_modify_qp(qp, &attributes, IBV_QP_STATE);
  attributes = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .rnr_retry = RNR_FOR_EVER};
  if (!number)
    number = ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_SQ_PSN | (retries ? IBV_QP_RNR_RETRY : 0));
  return number;
}

static struct srd_qp *efa_qp_new(struct srd_device *device, uint32_t sends, uint32_t receives, uint32_t qkey,
                                 void *context, GError **error)
{
  struct efadv_qp_init_attr efa = {.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD};
  struct ibv_qp_init_attr_ex init = {
      .qp_context = context,
      .send_cq = device->cq,
      .recv_cq = device->cq,
      .cap = {.max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 2, .max_recv_sge = 1},
      .qp_type = IBV_QPT_DRIVER,
      .sq_sig_all = 1,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
      .pd = device->verbs->pd,
      .send_ops_flags = IBV_QP_EX_WITH_SEND | (device->caps.reads ? IBV_QP_EX_WITH_RDMA_READ : 0),
  };
  struct ibv_qp *made = efadv_create_qp_ex(device->verbs->context, &init, &efa, sizeof efa);
  if (!made)
    return set_failed(error, device, "cannot make an SRD queue pair", errno);
  int number = bring_up(device, made, qkey);
  if (number) {
    ibv_destroy_qp(made);
    return set_failed(error, device, "cannot bring an SRD queue pair up", number);
  }
  struct srd_qp *qp = g_new(struct srd_qp, 1);
  *qp = (struct srd_qp){made, ibv_qp_to_qp_ex(made)};
  return qp;
}

static void efa_qp_free(struct srd_qp *qp)
{
  if (ibv_destroy_qp(qp->qp) != 0)
    g_error("a queue pair cannot be destroyed: %m"); /* bytes might still land */
  g_free(qp);
}

static uint32_t efa_qp_number(const struct srd_qp *qp)
{
  return qp->qp->qp_num;
}

static struct srd_address *efa_address_new(struct srd_device *device, const uint8_t gid[16], GError **error)
{
  struct ibv_ah_attr attributes = {
      .is_global = 1,
      .port_num = device->verbs->nic.port,
      .grh = {.sgid_index = (uint8_t)device->verbs->gid.index, .hop_limit = HOPS},
  };
  memcpy(attributes.grh.dgid.raw, gid, sizeof attributes.grh.dgid.raw);
  struct ibv_ah *handle = ibv_create_ah(device->verbs->pd, &attributes);
  if (!handle)
    return set_failed(error, device, "cannot make an address of the peer's", errno);
  struct srd_address *address = g_new(struct srd_address, 1);
  address->handle = handle;
  return address;
}

static void efa_address_free(struct srd_address *address)
{
  if (ibv_destroy_ah(address->handle) != 0)
    g_critical("an address of a peer's is still in use: %m");
  g_free(address);
}

/* --- work */

static gboolean efa_send(struct srd_qp *qp, const struct srd_work *work, uint32_t works)
{
  struct ibv_qp_ex *ex = qp->ex;
  ibv_wr_start(ex);
  for (const struct srd_work *w = work; w < work + works; w++) {
    struct ibv_sge sge[2] = {{w->piece[0].address, w->piece[0].bytes, w->piece[0].key},
                             {w->piece[1].address, w->piece[1].bytes, w->piece[1].key}};
    ex->wr_id = w->id;
    ex->wr_flags = IBV_SEND_SIGNALED;
    if (w->read)
      ibv_wr_rdma_read(ex, w->key, w->address);
    else
      ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, w->to->handle, w->qp, w->qkey);
    if (w->pieces == 1)
      ibv_wr_set_sge(ex, sge[0].lkey, sge[0].addr, sge[0].length);
    else
      ibv_wr_set_sge_list(ex, w->pieces, sge);
  }
  int number = ibv_wr_complete(ex);
  if (number)
    errno = number;
  return number == 0;
}

static gboolean efa_receive(struct srd_qp *qp, uint64_t id, const struct srd_piece_at *piece)
{
  struct ibv_sge sge = {piece->address, piece->bytes, piece->key};
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
  return ibv_post_recv(qp->qp, &wr, &bad) == 0;
}

static void translate(const struct ibv_wc *wc, struct srd_completion *c)
{
  *c = (struct srd_completion){.id = wc->wr_id, .bytes = wc->byte_len};
  if (wc->status == IBV_WC_SUCCESS)
    return;
  c->status = srd_status_of(wc->vendor_err, wc->status == IBV_WC_WR_FLUSH_ERR, &c->why);
}

static int poll_once(struct srd_device *device, struct ibv_wc *wc, uint32_t room)
{
  int count = ibv_poll_cq(device->cq, (int)room, wc);
  /* The driver takes a completion of a destroyed queue pair off and says that it does not know it: there may
   * be as many, one after another, as the queue holds. */
  for (int skips = 0; count < 0 && skips < COMPLETIONS_MAX; skips++)
    count = ibv_poll_cq(device->cq, (int)room, wc);
  return count;
}

static int efa_poll(struct srd_device *device, struct srd_completion *completion, uint32_t room)
{
  struct ibv_wc wc[32];
  int count = poll_once(device, wc, MIN(room, G_N_ELEMENTS(wc)));
  for (int i = 0; i < count; i++)
    translate(&wc[i], &completion[i]);
  return count;
}

static gboolean efa_arm(struct srd_device *device)
{
  return ibv_req_notify_cq(device->cq, 0) == 0;
}

static int efa_completion_fd(const struct srd_device *device)
{
  return device->channel->fd;
}

static void efa_drain(struct srd_device *device)
{
  verbs_device_drain(device->channel, device->cq);
}

static int efa_event_fd(const struct srd_device *device)
{
  return device->verbs->context->async_fd;
}

static gboolean efa_event(struct srd_device *device, void **qp_context, const char **why)
{
  return verbs_device_event(device->verbs, qp_context, why);
}

static const struct srd_device_ops efa = {
    .open = efa_open,
    .close = efa_close,
    .caps = efa_caps,
    .size = efa_size,
    .memory_new = efa_memory_new,
    .memory_free = efa_memory_free,
    .memory_piece = efa_memory_piece,
    .region_new = efa_region_new,
    .region_free = efa_memory_free,
    .qp_new = efa_qp_new,
    .qp_free = efa_qp_free,
    .qp_number = efa_qp_number,
    .address_new = efa_address_new,
    .address_free = efa_address_free,
    .send = efa_send,
    .receive = efa_receive,
    .poll = efa_poll,
    .arm = efa_arm,
    .completion_fd = efa_completion_fd,
    .drain = efa_drain,
    .event_fd = efa_event_fd,
    .event = efa_event,
};

struct verbs_end *verbs_srd_open(const struct verbs_end_config *config, GError **error)
{
  return srd_end_open(&efa, config, error);
}
