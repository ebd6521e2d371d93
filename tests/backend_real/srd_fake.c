/* A fake EFA; see srd_fake.h. */
#include "srd_fake.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/error.h"

#define CHUNK 50000 /* bytes of one registration of memory to land in: small, so that reads cross them */

struct srd_device {
  uint8_t gid[16];
  struct srd_caps caps;
  uint32_t completions_max;
  GArray *completions; /* struct srd_completion */
  GPtrArray *qps;
  int completion_fd, event_fd;
  gboolean armed, mute, dead;
  struct srd_qp *event_qp;
};

struct srd_qp {
  struct srd_device *device;
  uint32_t number, qkey, sends_max, receives_max, sends;
  void *context;
  GArray *receives; /* struct posted */
  gboolean broken;
};

struct posted {
  uint64_t id;
  struct srd_piece_at piece;
};

struct srd_address {
  uint8_t gid[16];
};

struct srd_memory {
  struct srd_device *device;
  uint8_t *base;
  uint64_t bytes;
  uint32_t key; /* of the first chunk; those that follow count up */
  gboolean chunked, remote;
};

struct flight {
  struct srd_qp *from;
  struct srd_work work;
  uint8_t gid[16]; /* of the peer: the address may be freed */
  gboolean overran;
};

static struct {
  GMutex lock;
  GCond changed;
  GThread *thread;
  GRand *random;
  gboolean stop, held;
  GPtrArray *devices, *memories;
  GArray *flights;
  uint32_t next_qp, next_key, fail;
  struct srd_caps depths;
  struct srd_fake_counts counts;
} net;

static void check(gboolean good, const char *what)
{
  if (!good)
    g_error("the fake device: %s", what); /* on any thread, where an assertion would only end that */
}

/* --- completions */

static void complete(struct srd_device *device, uint64_t id, enum srd_status status, const char *why,
                     uint32_t bytes)
{
  struct srd_completion c = {id, status, why, bytes};
  check(device->completions->len < device->completions_max, "its completion queue overflows");
  g_array_append_val(device->completions, c);
  if (device->armed) {
    device->armed = FALSE;
    uint64_t one = 1;
    check(write(device->completion_fd, &one, sizeof one) == sizeof one, "eventfd");
  }
}

/* --- memory */

static struct srd_memory *find_memory(const struct srd_device *device, uint32_t key, uint64_t address,
                                      uint64_t bytes)
{
  for (guint i = 0; i < net.memories->len; i++) {
    struct srd_memory *m = g_ptr_array_index(net.memories, i);
    uint32_t chunks = m->chunked ? (uint32_t)((m->bytes + CHUNK - 1) / CHUNK) : 1;
    if (m->device != device || key < m->key || key >= m->key + chunks)
      continue;
    uint64_t low = (uint64_t)(uintptr_t)m->base + (uint64_t)(key - m->key) * CHUNK;
    uint64_t high = m->chunked ? MIN(low + CHUNK, (uint64_t)(uintptr_t)m->base + m->bytes) : low + m->bytes;
    return address >= low && address <= high && bytes <= high - address ? m : NULL;
  }
  return NULL;
}

static uint8_t *local(const struct srd_device *device, const struct srd_piece_at *piece)
{
  check(find_memory(device, piece->key, piece->address, piece->bytes) != NULL, "a local key is wrong");
  return (uint8_t *)(uintptr_t)piece->address;
}

/* --- the fabric */

static struct srd_device *find_device(const uint8_t gid[16])
{
  for (guint i = 0; i < net.devices->len; i++) {
    struct srd_device *device = g_ptr_array_index(net.devices, i);
    if (memcmp(device->gid, gid, 16) == 0 && !device->dead)
      return device;
  }
  return NULL;
}

/* A device may be open more than once: whose queue pair it is tells. */
static struct srd_qp *find_qp(const struct flight *f)
{
  for (guint d = 0; d < net.devices->len; d++) {
    struct srd_device *device = g_ptr_array_index(net.devices, d);
    for (guint i = 0; !device->dead && memcmp(device->gid, f->gid, 16) == 0 && i < device->qps->len; i++) {
      struct srd_qp *qp = g_ptr_array_index(device->qps, i);
      if (qp->number == f->work.qp && qp->qkey == f->work.qkey && !qp->broken)
        return qp;
    }
  }
  return NULL;
}

static enum srd_status do_read(const struct flight *f, const struct srd_device *to, const char **why)
{
  const struct srd_piece_at *piece = &f->work.piece[0];
  struct srd_memory *m = find_memory(to, f->work.key, f->work.address, piece->bytes);
  if (!m || !m->remote || m->chunked) {
    *why = "remote access error";
    return SRD_DENIED;
  }
  memcpy(local(f->from->device, piece), (const uint8_t *)(uintptr_t)f->work.address, piece->bytes);
  net.counts.reads++;
  return SRD_OK;
}

/* FALSE: it finds no buffer. */
static gboolean do_send(struct flight *f, struct srd_qp *to)
{
  uint32_t bytes = 0;
  if (to->receives->len == 0) {
    net.counts.overruns += !f->overran;
    f->overran = TRUE;
    return FALSE;
  }
  struct posted posted = g_array_index(to->receives, struct posted, 0);
  g_array_remove_index(to->receives, 0);
  uint8_t *at = local(to->device, &posted.piece);
  for (uint32_t i = 0; i < f->work.pieces; i++) {
    const struct srd_piece_at *piece = &f->work.piece[i];
    check(piece->bytes <= posted.piece.bytes - bytes, "a datagram is longer than its buffer");
    memcpy(at + bytes, local(f->from->device, piece), piece->bytes);
    bytes += piece->bytes;
  }
  complete(to->device, posted.id, SRD_OK, NULL, bytes);
  net.counts.datagrams++;
  return TRUE;
}

static void deliver(guint which)
{
  struct flight *f = &g_array_index(net.flights, struct flight, which);
  struct srd_qp *qp = find_qp(f);
  enum srd_status status = SRD_OK;
  const char *why = NULL;
  if (f->from->device->dead) {
    g_array_remove_index_fast(net.flights, which);
    return;
  }
  if (f->from->device->mute)
    return;
  if (f->from->broken) {
    status = SRD_BROKEN;
    why = "flushed";
  } else if (!qp) {
    status = SRD_LOST;
    why = find_device(f->gid) ? "no such queue pair" : "it does not answer";
    net.counts.stray += !f->work.read;
  } else if (f->work.read) {
    status = do_read(f, qp->device, &why);
  } else if (!do_send(f, qp)) {
    return;
  }
  f->from->sends--;
  complete(f->from->device, f->work.id, status, why, 0);
  g_array_remove_index_fast(net.flights, which);
}

static gpointer fabric(gpointer unused)
{
  g_mutex_lock(&net.lock);
  while (!net.stop) {
    if (net.flights->len == 0 || net.held) {
      g_cond_wait(&net.changed, &net.lock);
      continue;
    }
    deliver((guint)g_rand_int_range(net.random, 0, (gint32)net.flights->len));
    if (g_rand_int_range(net.random, 0, 4) == 0) {
      g_mutex_unlock(&net.lock);
      sched_yield();
      g_mutex_lock(&net.lock);
    }
  }
  g_mutex_unlock(&net.lock);
  return unused;
}

/* --- what the test sets */

void srd_fake_begin(uint32_t seed)
{
  g_mutex_init(&net.lock);
  g_cond_init(&net.changed);
  net.random = g_rand_new_with_seed(seed);
  net.devices = g_ptr_array_new();
  net.memories = g_ptr_array_new();
  net.flights = g_array_new(FALSE, FALSE, sizeof(struct flight));
  net.next_qp = net.next_key = 17;
  net.stop = net.held = FALSE;
  net.counts = (struct srd_fake_counts){0};
  srd_fake_depths(512, 1024, 16384);
  net.thread = g_thread_new("fabric", fabric, NULL);
}

void srd_fake_end(void)
{
  g_mutex_lock(&net.lock);
  net.stop = TRUE;
  g_cond_signal(&net.changed);
  g_mutex_unlock(&net.lock);
  g_thread_join(net.thread);
  cr_expect_eq(net.devices->len, 0, "devices are left");
  cr_expect_eq(net.memories->len, 0, "registered memory is left");
  cr_expect_eq(net.flights->len, 0, "work is left");
  cr_expect_eq(net.counts.addresses, 0, "addresses are left");
  g_ptr_array_unref(net.devices);
  g_ptr_array_unref(net.memories);
  g_array_unref(net.flights);
  g_rand_free(net.random);
  g_cond_clear(&net.changed);
  g_mutex_clear(&net.lock);
}

void srd_fake_fail(uint32_t n)
{
  g_mutex_lock(&net.lock);
  net.fail = n;
  g_mutex_unlock(&net.lock);
}

void srd_fake_depths(uint32_t sends, uint32_t receives, uint32_t completions)
{
  net.depths = (struct srd_caps){
      .sends_max = sends, .receives_max = receives, .completions_max = completions, .gbit_s = 100};
}

void srd_fake_hold(gboolean held)
{
  g_mutex_lock(&net.lock);
  net.held = held;
  g_cond_signal(&net.changed);
  g_mutex_unlock(&net.lock);
}

void srd_fake_mute(uint8_t gid)
{
  uint8_t whole[16] = {[15] = gid};
  g_mutex_lock(&net.lock);
  struct srd_device *device = find_device(whole);
  cr_assert(device != NULL);
  device->mute = TRUE;
  g_mutex_unlock(&net.lock);
}

void srd_fake_kill(uint8_t gid)
{
  uint8_t whole[16] = {[15] = gid};
  g_mutex_lock(&net.lock);
  struct srd_device *device = find_device(whole);
  cr_assert(device != NULL);
  device->dead = TRUE;
  g_mutex_unlock(&net.lock);
}

void srd_fake_break(uint8_t gid, gboolean by_event)
{
  uint8_t whole[16] = {[15] = gid};
  uint64_t one = 1;
  g_mutex_lock(&net.lock);
  struct srd_device *device = find_device(whole);
  cr_assert(device && device->qps->len == 1);
  struct srd_qp *qp = g_ptr_array_index(device->qps, 0);
  qp->broken = TRUE;
  if (by_event) {
    device->event_qp = qp;
    cr_assert_eq(write(device->event_fd, &one, sizeof one), sizeof one);
  }
  g_mutex_unlock(&net.lock);
}

void srd_fake_counts(struct srd_fake_counts *counts)
{
  g_mutex_lock(&net.lock);
  *counts = net.counts;
  for (guint i = 0; i < net.flights->len; i++)
    counts->segments += g_array_index(net.flights, struct flight, i).work.pieces == 2;
  g_mutex_unlock(&net.lock);
}

/* --- the device's calls */

static gboolean can_make(GError **error)
{
  g_mutex_lock(&net.lock);
  gboolean fails = net.fail > 0 && --net.fail == 0;
  g_mutex_unlock(&net.lock);
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
  device->caps = net.depths;
  device->caps.reads = nic->srd_reads;
  device->caps.read_max = nic->srd_read_max;
  device->caps.datagram_max = nic->mtu;
  device->completions = g_array_new(FALSE, FALSE, sizeof(struct srd_completion));
  device->qps = g_ptr_array_new();
  device->completion_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  device->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  g_mutex_lock(&net.lock);
  g_ptr_array_add(net.devices, device);
  g_mutex_unlock(&net.lock);
  return device;
}

static void fake_close(struct srd_device *device)
{
  g_mutex_lock(&net.lock);
  check(device->qps->len == 0, "closed with queue pairs");
  for (guint i = 0; i < net.memories->len; i++)
    check(((struct srd_memory *)g_ptr_array_index(net.memories, i))->device != device, "closed with memory");
  g_ptr_array_remove(net.devices, device);
  g_mutex_unlock(&net.lock);
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
  check(completions > 0 && completions <= device->caps.completions_max, "completions");
  device->completions_max = completions;
  return can_make(error);
}

static struct srd_memory *add_memory(const struct srd_memory *memory, uint32_t keys)
{
  struct srd_memory *m = g_memdup2(memory, sizeof *memory);
  g_mutex_lock(&net.lock);
  m->key = net.next_key;
  net.next_key += keys;
  g_ptr_array_add(net.memories, m);
  g_mutex_unlock(&net.lock);
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
  g_mutex_lock(&net.lock);
  check(g_ptr_array_remove(net.memories, memory), "memory is freed twice");
  g_mutex_unlock(&net.lock);
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
  check(!remote || device->caps.reads, "without RDMA READ nobody may be let read");
  if (!can_make(error))
    return NULL;
  struct srd_memory *made = add_memory(&m, 1);
  *local_key = *key = made->key;
  return made;
}

static struct srd_qp *fake_qp_new(struct srd_device *device, uint32_t sends, uint32_t receives, uint32_t qkey,
                                  void *context, GError **error)
{
  check(sends <= device->caps.sends_max && receives <= device->caps.receives_max && qkey < 1U << 31,
        "a queue pair out of bounds");
  check(device->completions_max > 0, "a queue pair without a completion queue");
  if (!can_make(error))
    return NULL;
  struct srd_qp *qp = g_new0(struct srd_qp, 1);
  *qp = (struct srd_qp){.device = device,
                        .qkey = qkey,
                        .sends_max = sends,
                        .receives_max = receives,
                        .context = context,
                        .receives = g_array_new(FALSE, FALSE, sizeof(struct posted))};
  g_mutex_lock(&net.lock);
  qp->number = net.next_qp++;
  g_ptr_array_add(device->qps, qp);
  g_mutex_unlock(&net.lock);
  return qp;
}

static void fake_qp_free(struct srd_qp *qp)
{
  g_mutex_lock(&net.lock);
  check(g_ptr_array_remove(qp->device->qps, qp), "a queue pair is freed twice");
  for (guint i = 0; i < net.flights->len;)
    if (g_array_index(net.flights, struct flight, i).from == qp)
      g_array_remove_index_fast(net.flights, i);
    else
      i++;
  if (qp->device->event_qp == qp)
    qp->device->event_qp = NULL;
  g_mutex_unlock(&net.lock);
  g_array_unref(qp->receives);
  g_free(qp);
}

static uint32_t fake_qp_number(const struct srd_qp *qp)
{
  return qp->number;
}

static struct srd_address *fake_address_new(struct srd_device *device, const uint8_t gid[16], GError **error)
{
  check(device != NULL, "an address of no device");
  if (!can_make(error))
    return NULL;
  struct srd_address *address = g_new(struct srd_address, 1);
  memcpy(address->gid, gid, sizeof address->gid);
  g_mutex_lock(&net.lock);
  net.counts.addresses++;
  g_mutex_unlock(&net.lock);
  return address;
}

static void fake_address_free(struct srd_address *address)
{
  g_mutex_lock(&net.lock);
  net.counts.addresses--;
  g_mutex_unlock(&net.lock);
  g_free(address);
}

static void check_work(const struct srd_qp *qp, const struct srd_work *work)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < work->pieces; i++) {
    local(qp->device, &work->piece[i]);
    bytes += work->piece[i].bytes;
  }
  check(work->pieces >= 1 && work->pieces <= (work->read ? 1 : 2), "pieces");
  check(bytes > 0 && bytes <= (work->read ? qp->device->caps.read_max : qp->device->caps.datagram_max),
        "a work request is too long");
  check(!work->read || qp->device->caps.reads, "it has no RDMA READ");
}

static gboolean fake_send(struct srd_qp *qp, const struct srd_work *work, uint32_t works)
{
  g_mutex_lock(&net.lock);
  for (uint32_t i = 0; i < works; i++) {
    struct flight f = {.from = qp, .work = work[i]};
    check_work(qp, &work[i]);
    check(qp->sends < qp->sends_max, "its send queue overflows");
    memcpy(f.gid, work[i].to->gid, sizeof f.gid);
    g_array_append_val(net.flights, f);
    qp->sends++;
    net.counts.sends_most = MAX(net.counts.sends_most, qp->sends);
  }
  g_cond_signal(&net.changed);
  g_mutex_unlock(&net.lock);
  return TRUE;
}

static gboolean fake_receive(struct srd_qp *qp, uint64_t id, const struct srd_piece_at *piece)
{
  struct posted posted = {id, *piece};
  g_mutex_lock(&net.lock);
  local(qp->device, piece);
  check(qp->receives->len < qp->receives_max, "its receive queue overflows");
  g_array_append_val(qp->receives, posted);
  g_mutex_unlock(&net.lock);
  return TRUE;
}

static int fake_poll(struct srd_device *device, struct srd_completion *completion, uint32_t room)
{
  g_mutex_lock(&net.lock);
  uint32_t count = MIN(room, device->completions->len);
  if (count > 0) {
    memcpy(completion, device->completions->data, count * sizeof *completion);
    g_array_remove_range(device->completions, 0, count);
  }
  g_mutex_unlock(&net.lock);
  return (int)count;
}

static gboolean fake_arm(struct srd_device *device)
{
  g_mutex_lock(&net.lock);
  device->armed = TRUE;
  g_mutex_unlock(&net.lock);
  return TRUE;
}

static int fake_completion_fd(const struct srd_device *device)
{
  return device->completion_fd;
}

static void fake_drain(struct srd_device *device)
{
  uint64_t count;
  check(read(device->completion_fd, &count, sizeof count) == sizeof count || errno == EAGAIN, "eventfd");
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
  g_mutex_lock(&net.lock);
  *why = device->event_qp ? "its queue pair broke" : NULL;
  *qp_context = device->event_qp ? device->event_qp->context : NULL;
  device->event_qp = NULL;
  g_mutex_unlock(&net.lock);
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
