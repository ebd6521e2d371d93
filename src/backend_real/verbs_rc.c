/* Reliable connected queue pairs, on InfiniBand and RoCE: ends and lines; see verbs_queue.h and verbs_rc.h.
 *
 * A shelf's queue pair is brought to "ready to receive" only: it answers reads, which its NIC does alone, and
 * can ask for nothing. A reader's grants no access at all. */
#include "backend_real/verbs_rc.h"

#include <errno.h>
#include <string.h>

#include "core/error.h"

/* A peer that answers nothing is given up after TIMEOUT x (RETRIES + 1): 4.096 us x 2^14 x 7 = 0.47 s. A NIC
 * may wait up to four times as long as told (InfiniBand specification, 9.7.6.1.3): 1.9 s, within which a
 * killed server is to be noticed. A packet that a network lost costs 67 ms, so shorter would gain little and
 * break on a short congestion. 7 retries are endless to some drivers (Soft-RoCE). */
#define TIMEOUT 14
#define RETRIES 6
/* "Receiver not ready" is said to reads only while a page of the peer's is being faulted in; 7 would be for
 * ever. */
#define RNR_RETRIES 6
#define RNR_TIMER   12 /* 0.64 ms */

/* More than one, so that a read that waits for a lost packet holds up only those behind it in its own line.
 */
#define RC_LINES 4

#define COMPLETIONS_MAX 16384 /* that an end has room for, where the device has */
#define HOPS            64

/* --- ends
 * ----------------------------------------------------------------------------------------------------------*/

static gboolean set_failed(GError **error, const char *name, const char *what)
{
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s: %s", name, what, g_strerror(errno));
  return FALSE;
}

static gboolean make_queue(struct rc_end *end, GError **error)
{
  struct ibv_device_attr attributes;
  if (end->serves) { /* nothing completes at a shelf, but a queue pair must have a queue */
    end->cq = ibv_create_cq(end->device->context, 1, NULL, NULL, 0);
    return end->cq || set_failed(error, end->base.name, "cannot make a completion queue");
  }
  if (ibv_query_device(end->device->context, &attributes) != 0)
    return set_failed(error, end->base.name, "cannot be asked what it can");
  end->cq_room = (uint32_t)MIN(attributes.max_cqe, COMPLETIONS_MAX);
  end->channel = verbs_device_channel(end->device);
  if (!end->channel)
    return set_failed(error, end->base.name, "cannot make a completion channel");
  end->cq = ibv_create_cq(end->device->context, (int)end->cq_room, NULL, end->channel, 0);
  return end->cq || set_failed(error, end->base.name, "cannot make a completion queue");
}

static gboolean register_memories(struct rc_end *end, const struct verbs_end_config *config, GError **error)
{
  end->memory = g_new0(struct verbs_memory *, config->memories);
  for (; end->memories < config->memories; end->memories++)
    if (!(end->memory[end->memories] = verbs_memory_new(end->device, &config->memory[end->memories], error)))
      return FALSE;
  return TRUE;
}

static void rc_close(struct verbs_end *base)
{
  struct rc_end *end = (struct rc_end *)base;
  for (uint32_t i = 0; i < end->memories; i++)
    verbs_memory_free(end->memory[i]);
  g_free(end->memory);
  if (end->cq && ibv_destroy_cq(end->cq) != 0)
    g_critical("%s: a completion queue is still in use", end->base.name);
  if (end->channel)
    ibv_destroy_comp_channel(end->channel);
  verbs_device_close(end->device);
  g_ptr_array_unref(end->slots);
  g_free(end);
}

static struct verbs_end *rc_open(const struct verbs_end_config *config, GError **error)
{
  struct rc_end *end = g_new0(struct rc_end, 1);
  end->base.ops = &verbs_rc;
  end->serves = config->serves;
  end->slots = g_ptr_array_new();
  end->tail = &end->news;
  g_snprintf(end->base.name, sizeof end->base.name, "%s:%u", config->nic->device, config->nic->port);
  end->device = verbs_device_open(config->nic, &config->gid, error);
  if (end->device && make_queue(end, error) && register_memories(end, config, error))
    return &end->base;
  rc_close(&end->base);
  return NULL;
}

static gboolean rc_expose(struct verbs_end *base, uint8_t *memory, uint64_t bytes,
                          struct verbs_exposed *exposed, GError **error)
{
  struct rc_end *end = (struct rc_end *)base;
  struct ibv_mr *mr = verbs_memory_expose(end->device, memory, bytes, error);
  if (!mr)
    return FALSE;
  *exposed = (struct verbs_exposed){(uint64_t)(uintptr_t)memory, mr->rkey, mr};
  return TRUE;
}

/* Once a registration is gone, so is its key: the NIC refuses what it has not begun, and ibv_dereg_mr waits
 * for the rest. */
static void rc_conceal(struct verbs_end *base, struct verbs_exposed *exposed)
{
  if (exposed->handle && ibv_dereg_mr(exposed->handle) != 0)
    g_error("%s: memory stays open to peers: %m", base->name);
  exposed->handle = NULL;
}

static uint32_t rc_fds(const struct verbs_end *base, int fd[])
{
  const struct rc_end *end = (const struct rc_end *)base;
  fd[0] = end->device->context->async_fd;
  if (!end->channel)
    return 1;
  fd[1] = end->channel->fd;
  return 2;
}

static void rc_woken(struct verbs_end *base)
{
  struct rc_end *end = (struct rc_end *)base;
  void *qp;
  const char *why;
  while (verbs_device_event(end->device, &qp, &why))
    if (qp)
      rc_break(qp, why);
  if (end->device->failed)
    rc_break_all(end, "its NIC failed");
  if (end->channel)
    verbs_device_drain(end->channel, end->cq);
}

/* --- lines
 * ---------------------------------------------------------------------------------------------------------*/

static void make_offer(struct rc_line *line, const struct verbs_device *device)
{
  line->own = (struct rc_offer){.qp = line->qp->qp_num,
                                .psn = g_random_int() & 0xffffff,
                                .mtu = device->nic.mtu,
                                .reads_asked = CLAMP(device->nic.reads_asked, 1, RC_READS_MAX),
                                .reads_served = CLAMP(device->nic.reads_served, 1, RC_READS_MAX),
                                .gbit_s = (uint32_t)CLAMP(device->nic.gbit_s, 0, 1e6),
                                .lid = device->nic.lid,
                                .ethernet = device->nic.ethernet};
  memcpy(line->own.gid, device->gid.raw, sizeof line->own.gid);
}

static gboolean to_init(struct rc_line *line, const struct rc_end *end)
{
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_INIT,
                                   .port_num = end->device->nic.port,
                                   .qp_access_flags = end->serves ? IBV_ACCESS_REMOTE_READ : 0};
  return ibv_modify_qp(line->qp, &attributes,
                       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0;
}

static void take_slot(struct rc_end *end, struct rc_line *line)
{
  guint slot = 0;
  while (slot < end->slots->len && g_ptr_array_index(end->slots, slot))
    slot++;
  if (slot == end->slots->len)
    g_ptr_array_add(end->slots, NULL);
  g_ptr_array_index(end->slots, slot) = line;
  line->slot = slot;
  line->generation = ++end->generation;
  end->lines++;
}

static void rc_line_free(struct verbs_line *base)
{
  struct rc_line *line = (struct rc_line *)base;
  struct rc_end *end = (struct rc_end *)base->end;
  rc_break(line, "it was given up");
  rc_forget(end, line);
  g_ptr_array_index(end->slots, line->slot) = NULL;
  end->lines--;
  g_free(line);
}

static struct verbs_line *rc_line_new(struct verbs_end *base, void *context, GError **error)
{
  struct rc_end *end = (struct rc_end *)base;
  if (end->lines >= G_MAXUINT16 || (!end->serves && (end->lines + 1) * RC_DEPTH > end->cq_room)) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: no room for more than %u queue pairs", base->name,
                end->lines);
    return NULL;
  }
  struct rc_line *line = g_new0(struct rc_line, 1);
  line->base = (struct verbs_line){base, context};
  take_slot(end, line);
  struct ibv_qp_init_attr init = {.qp_context = line,
                                  .send_cq = end->cq,
                                  .recv_cq = end->cq,
                                  .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = end->serves ? 1 : RC_DEPTH,
                                          .max_recv_wr = 1,
                                          .max_send_sge = VERBS_SGES,
                                          .max_recv_sge = 1}};
  line->qp = ibv_create_qp(end->device->pd, &init);
  if (line->qp && to_init(line, end)) {
    make_offer(line, end->device);
    return &line->base;
  }
  set_failed(error, base->name, "cannot make a queue pair");
  rc_line_free(&line->base);
  return NULL;
}

static size_t rc_offer(struct verbs_line *line, uint8_t offer[VERBS_OFFER_BYTES])
{
  rc_offer_put(&((struct rc_line *)line)->own, offer);
  return RC_OFFER_BYTES;
}

static gboolean rc_origin(const uint8_t *offer, size_t size, uint8_t gid[16])
{
  struct rc_offer parsed;
  if (!rc_offer_parse(offer, size, &parsed))
    return FALSE;
  memcpy(gid, parsed.gid, sizeof parsed.gid);
  return TRUE;
}

/* --- connecting
 * ----------------------------------------------------------------------------------------------------*/

static enum ibv_mtu mtu_of(uint32_t bytes)
{
  enum ibv_mtu mtu = IBV_MTU_256;
  for (uint32_t size = 512; size <= bytes; size *= 2)
    mtu++;
  return mtu;
}

/* On InfiniBand a packet needs a global route only to another subnet. */
static struct ibv_ah_attr way_to(const struct rc_offer *peer, const struct verbs_device *device)
{
  gboolean global = device->nic.ethernet || memcmp(peer->gid, device->gid.raw, 8) != 0;
  struct ibv_ah_attr way = {.dlid = peer->lid, .port_num = device->nic.port, .is_global = global};
  if (global) {
    way.grh.sgid_index = (uint8_t)device->gid.index;
    way.grh.hop_limit = HOPS;
    memcpy(way.grh.dgid.raw, peer->gid, sizeof peer->gid);
  }
  return way;
}

static gboolean to_receive(struct rc_line *line, const struct rc_end *end)
{
  const struct rc_offer *peer = &line->peer;
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTR,
                                   .ah_attr = way_to(peer, end->device),
                                   .path_mtu = mtu_of(MIN(peer->mtu, line->own.mtu)),
                                   .dest_qp_num = peer->qp,
                                   .rq_psn = peer->psn,
                                   .max_dest_rd_atomic =
                                       end->serves ? (uint8_t)rc_reads(peer, &line->own) : 0,
                                   .min_rnr_timer = RNR_TIMER};
  return ibv_modify_qp(line->qp, &attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0;
}

static gboolean to_send(struct rc_line *line)
{
  struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RTS,
                                   .timeout = TIMEOUT,
                                   .retry_cnt = RETRIES,
                                   .rnr_retry = RNR_RETRIES,
                                   .sq_psn = line->own.psn,
                                   .max_rd_atomic = (uint8_t)rc_reads(&line->own, &line->peer)};
  return ibv_modify_qp(line->qp, &attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

static gboolean rc_connect(struct verbs_line *base, const uint8_t *offer, size_t size, GError **error)
{
  struct rc_line *line = (struct rc_line *)base;
  struct rc_end *end = (struct rc_end *)base->end;
  const char *why = NULL;
  if (!rc_offer_parse(offer, size, &line->peer))
    why = "the peer's offer is none of an RC queue pair";
  else if (line->peer.ethernet != line->own.ethernet)
    why = "one end is on InfiniBand and the other on Ethernet";
  else if (!line->qp || line->connected)
    why = "the queue pair is not new";
  if (why) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", base->end->name, why);
    return FALSE;
  }
  if (!to_receive(line, end) || (!end->serves && !to_send(line)))
    return set_failed(error, base->end->name, "cannot connect a queue pair");
  line->connected = TRUE;
  return TRUE;
}

static void rc_line_window(const struct verbs_line *base, struct verbs_window *window)
{
  const struct rc_line *line = (const struct rc_line *)base;
  rc_window(&line->own, &line->peer, window);
}

static const char *rc_broken(const struct verbs_line *base)
{
  return ((const struct rc_line *)base)->broken;
}

static void rc_line_break(struct verbs_line *base)
{
  rc_break((struct rc_line *)base, "it was given up");
}

const struct verbs_queue_ops verbs_rc = {
    .name = "RC",
    .lines = RC_LINES,
    .open = rc_open,
    .close = rc_close,
    .expose = rc_expose,
    .conceal = rc_conceal,
    .line_new = rc_line_new,
    .offer = rc_offer,
    .origin = rc_origin,
    .connect = rc_connect,
    .window = rc_line_window,
    .post = rc_post,
    .broken = rc_broken,
    .line_break = rc_line_break,
    .line_free = rc_line_free,
    .poll = rc_poll,
    .arm = rc_arm,
    .fds = rc_fds,
    .woken = rc_woken,
};
