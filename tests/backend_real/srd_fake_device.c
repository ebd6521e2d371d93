/* A fake EFA: the calls of a device; see srd_fake_device.h. */
#include "srd_fake_device.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/error.h"

static gboolean can_make(GError **error)
{
  g_mutex_lock(&srd_net.lock);
  gboolean fails = srd_net.fail > 0 && --srd_net.fail == 0;
  g_mutex_unlock(&srd_net.lock);
  if (fails)
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "the fake device makes no more");
  return !fails;
}

static struct srd_device *fake_open(const struct nic *nic, const struct nic_gid *gid, GError **error)
{
  if (!can_make(error))
    return NULL;
  struct srd_device *device = g_new0(struct srd_device, 1);
  memcpy(device->gid, gid->raw, sizeof device->gid);
  device->caps = srd_net.depths;
  device->caps.reads = nic->srd_reads;
  device->caps.read_max = nic->srd_read_max;
  device->caps.datagram_max = nic->mtu;
  device->completions = g_array_new(FALSE, FALSE, sizeof(struct srd_completion));
  device->qps = g_ptr_array_new();
  device->completion_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  device->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  g_mutex_lock(&srd_net.lock);
  g_ptr_array_add(srd_net.devices, device);
  g_mutex_unlock(&srd_net.lock);
  return device;
}

static void fake_close(struct srd_device *device)
{
  g_mutex_lock(&srd_net.lock);
  srd_fake_check(device->qps->len == 0, "closed with queue pairs");
  for (guint i = 0; i < srd_net.memories->len; i++)
    srd_fake_check(((struct srd_memory *)g_ptr_array_index(srd_net.memories, i))->device != device,
                   "closed with memory");
  g_ptr_array_remove(srd_net.devices, device);
  g_mutex_unlock(&srd_net.lock);
  close(device->completion_fd);
  close(device->event_fd);
  g_ptr_array_unref(device->qps);
  g_array_unref(device->completions);
  g_free(device);
}

static void fake_caps(const struct srd_device *device, struct srd_caps *caps)
{
  *caps = device->caps;
}

static gboolean fake_size(struct srd_device *device, uint32_t completions, GError **error)
{
  srd_fake_check(completions > 0 && completions <= device->caps.completions_max, "completions");
  device->completions_max = completions;
  return can_make(error);
}

static struct srd_memory *add_memory(const struct srd_memory *memory, uint32_t keys)
{
  struct srd_memory *m = g_memdup2(memory, sizeof *memory);
  g_mutex_lock(&srd_net.lock);
  m->key = srd_net.next_key;
  srd_net.next_key += keys;
  g_ptr_array_add(srd_net.memories, m);
  g_mutex_unlock(&srd_net.lock);
  return m;
}

static struct srd_memory *fake_memory_new(struct srd_device *device, const struct memory *memory,
                                          GError **error)
{
  struct srd_memory m = {
      .device = device, .base = memory->base, .bytes = memory->bytes, .chunked = TRUE, .remote = FALSE};
  return can_make(error) ? add_memory(&m, (uint32_t)(memory->bytes / CHUNK + 1)) : NULL;
}

static void fake_memory_free(struct srd_memory *memory)
{
  g_mutex_lock(&srd_net.lock);
  srd_fake_check(g_ptr_array_remove(srd_net.memories, memory), "memory is freed twice");
  g_mutex_unlock(&srd_net.lock);
  g_free(memory);
}

static void fake_memory_piece(const struct srd_memory *memory, uint64_t at, uint32_t bytes,
                              struct srd_piece_at *piece)
{
  *piece = (struct srd_piece_at){(uint64_t)(uintptr_t)memory->base + at,
                                 (uint32_t)MIN(bytes, (at / CHUNK + 1) * CHUNK - at),
                                 memory->key + (uint32_t)(at / CHUNK)};
}

static struct srd_memory *fake_region_new(struct srd_device *device, uint8_t *base, uint64_t bytes,
                                          gboolean remote, uint32_t *local_key, uint32_t *key, GError **error)
{
  struct srd_memory m = {.device = device, .base = base, .bytes = bytes, .remote = remote};
  srd_fake_check(!remote || device->caps.reads, "without RDMA READ nobody may be let read");
  if (!can_make(error))
    return NULL;
  struct srd_memory *made = add_memory(&m, 1);
  *local_key = *key = made->key;
  return made;
}

static struct srd_qp *fake_qp_new(struct srd_device *device, uint32_t sends, uint32_t receives, uint32_t qkey,
                                  void *context, GError **error)
{
  srd_fake_check(sends <= device->caps.sends_max && receives <= device->caps.receives_max && qkey < 1U << 31,
                 "a queue pair out of bounds");
  srd_fake_check(device->completions_max > 0, "a queue pair without a completion queue");
  if (!can_make(error))
    return NULL;
  struct srd_qp *qp = g_new0(struct srd_qp, 1);
  *qp = (struct srd_qp){.device = device,
                        .qkey = qkey,
                        .sends_max = sends,
                        .receives_max = receives,
                        .context = context,
                        .receives = g_array_new(FALSE, FALSE, sizeof(struct posted))};
  g_mutex_lock(&srd_net.lock);
  qp->number = srd_net.next_qp++;
  g_ptr_array_add(device->qps, qp);
  g_mutex_unlock(&srd_net.lock);
  return qp;
}

static void fake_qp_free(struct srd_qp *qp)
{
  g_mutex_lock(&srd_net.lock);
  srd_fake_check(g_ptr_array_remove(qp->device->qps, qp), "a queue pair is freed twice");
  for (guint i = 0; i < srd_net.flights->len;)
    if (g_array_index(srd_net.flights, struct flight, i).from == qp)
      g_array_remove_index_fast(srd_net.flights, i);
    else
      i++;
  if (qp->device->event_qp == qp)
    qp->device->event_qp = NULL;
  g_mutex_unlock(&srd_net.lock);
  g_array_unref(qp->receives);
  g_free(qp);
}

static uint32_t fake_qp_number(const struct srd_qp *qp)
{
  return qp->number;
}

static struct srd_address *fake_address_new(struct srd_device *device, const uint8_t gid[16], GError **error)
{
  srd_fake_check(device != NULL, "an address of no device");
  if (!can_make(error))
    return NULL;
  struct srd_address *address = g_new(struct srd_address, 1);
  memcpy(address->gid, gid, sizeof address->gid);
  g_mutex_lock(&srd_net.lock);
  srd_net.counts.addresses++;
  g_mutex_unlock(&srd_net.lock);
  return address;
}

static void fake_address_free(struct srd_address *address)
{
  g_mutex_lock(&srd_net.lock);
  srd_net.counts.addresses--;
  g_mutex_unlock(&srd_net.lock);
  g_free(address);
}

static void check_work(const struct srd_qp *qp, const struct srd_work *work)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < work->pieces; i++) {
    srd_fake_local(qp->device, &work->piece[i]);
    bytes += work->piece[i].bytes;
  }
  srd_fake_check(work->pieces >= 1 && work->pieces <= (work->read ? 1 : 2), "pieces");
  srd_fake_check(bytes > 0 &&
                     bytes <= (work->read ? qp->device->caps.read_max : qp->device->caps.datagram_max),
                 "a work request is too long");
  srd_fake_check(!work->read || qp->device->caps.reads, "it has no RDMA READ");
}

static gboolean fake_send(struct srd_qp *qp, const struct srd_work *work, uint32_t works)
{
  g_mutex_lock(&srd_net.lock);
  for (uint32_t i = 0; i < works; i++) {
    struct flight f = {.from = qp, .work = work[i]};
    check_work(qp, &work[i]);
    srd_fake_check(qp->sends < qp->sends_max, "its send queue overflows");
    memcpy(f.gid, work[i].to->gid, sizeof f.gid);
    g_array_append_val(srd_net.flights, f);
    qp->sends++;
    srd_net.counts.sends_most = MAX(srd_net.counts.sends_most, qp->sends);
  }
  g_cond_signal(&srd_net.changed);
  g_mutex_unlock(&srd_net.lock);
  return TRUE;
}

static gboolean fake_receive(struct srd_qp *qp, uint64_t id, const struct srd_piece_at *piece)
{
  struct posted posted = {id, *piece};
  g_mutex_lock(&srd_net.lock);
  srd_fake_local(qp->device, piece);
  srd_fake_check(qp->receives->len < qp->receives_max, "its receive queue overflows");
  g_array_append_val(qp->receives, posted);
  g_mutex_unlock(&srd_net.lock);
  return TRUE;
}

static int fake_poll(struct srd_device *device, struct srd_completion *completion, uint32_t room)
{
  g_mutex_lock(&srd_net.lock);
  uint32_t count = MIN(room, device->completions->len);
  if (count > 0) {
    memcpy(completion, device->completions->data, count * sizeof *completion);
    g_array_remove_range(device->completions, 0, count);
  }
  g_mutex_unlock(&srd_net.lock);
  return (int)count;
}

static gboolean fake_arm(struct srd_device *device)
{
  g_mutex_lock(&srd_net.lock);
  srd_fake_rush_now();
  device->armed = TRUE;
  g_mutex_unlock(&srd_net.lock);
  return TRUE;
}

static int fake_completion_fd(const struct srd_device *device)
{
  return device->completion_fd;
}

static void fake_drain(struct srd_device *device)
{
  uint64_t count;
  srd_fake_check(read(device->completion_fd, &count, sizeof count) == sizeof count || errno == EAGAIN,
                 "eventfd");
}

static int fake_event_fd(const struct srd_device *device)
{
  return device->event_fd;
}

static gboolean fake_event(struct srd_device *device, void **qp_context, const char **why)
{
  uint64_t count;
  if (read(device->event_fd, &count, sizeof count) != sizeof count)
    return FALSE;
  g_mutex_lock(&srd_net.lock);
  *why = device->event_qp ? "its queue pair broke" : NULL;
  *qp_context = device->event_qp ? device->event_qp->context : NULL;
  device->event_qp = NULL;
  g_mutex_unlock(&srd_net.lock);
  return TRUE;
}

const struct srd_device_ops srd_fake = {
    .open = fake_open,
    .close = fake_close,
    .caps = fake_caps,
    .size = fake_size,
    .memory_new = fake_memory_new,
    .memory_free = fake_memory_free,
    .memory_piece = fake_memory_piece,
    .region_new = fake_region_new,
    .region_free = fake_memory_free,
    .qp_new = fake_qp_new,
    .qp_free = fake_qp_free,
    .qp_number = fake_qp_number,
    .address_new = fake_address_new,
    .address_free = fake_address_free,
    .send = fake_send,
    .receive = fake_receive,
    .poll = fake_poll,
    .arm = fake_arm,
    .completion_fd = fake_completion_fd,
    .drain = fake_drain,
    .event_fd = fake_event_fd,
    .event = fake_event,
};
