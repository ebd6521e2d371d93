/* A fake EFA; see srd_fake.h. */
#include "srd_fake_device.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct srd_fabric srd_net;

void srd_fake_check(gboolean good, const char *what)
{
  if (!good)
    g_error("the fake device: %s", what); /* on any thread, where an assertion would only end that */
}

/* --- completions */

static void complete(struct srd_device *device, uint64_t id, enum srd_status status, const char *why,
                     uint32_t bytes)
{
  struct srd_completion c = {id, status, why, bytes};
  srd_fake_check(device->completions->len < device->completions_max, "its completion queue overflows");
  g_array_append_val(device->completions, c);
  if (device->armed) {
    device->armed = FALSE;
    uint64_t one = 1;
    srd_fake_check(write(device->completion_fd, &one, sizeof one) == sizeof one, "eventfd");
  }
}

/* --- memory */

static struct srd_memory *find_memory(const struct srd_device *device, uint32_t key, uint64_t address,
                                      uint64_t bytes)
{
  for (guint i = 0; i < srd_net.memories->len; i++) {
    struct srd_memory *m = g_ptr_array_index(srd_net.memories, i);
    uint32_t chunks = m->chunked ? (uint32_t)((m->bytes + CHUNK - 1) / CHUNK) : 1;
    if (m->device != device || key < m->key || key >= m->key + chunks)
      continue;
    uint64_t low = (uint64_t)(uintptr_t)m->base + (uint64_t)(key - m->key) * CHUNK;
    uint64_t high = m->chunked ? MIN(low + CHUNK, (uint64_t)(uintptr_t)m->base + m->bytes) : low + m->bytes;
    return address >= low && address <= high && bytes <= high - address ? m : NULL;
  }
  return NULL;
}

uint8_t *srd_fake_local(const struct srd_device *device, const struct srd_piece_at *piece)
{
  srd_fake_check(find_memory(device, piece->key, piece->address, piece->bytes) != NULL,
                 "a local key is wrong");
  return (uint8_t *)(uintptr_t)piece->address;
}

/* --- the fabric */

static struct srd_device *find_device(const uint8_t gid[16])
{
  for (guint i = 0; i < srd_net.devices->len; i++) {
    struct srd_device *device = g_ptr_array_index(srd_net.devices, i);
    if (memcmp(device->gid, gid, 16) == 0 && !device->dead)
      return device;
  }
  return NULL;
}

/* A device may be open more than once: whose queue pair it is tells. */
static struct srd_qp *find_qp(const struct flight *f)
{
  for (guint d = 0; d < srd_net.devices->len; d++) {
    struct srd_device *device = g_ptr_array_index(srd_net.devices, d);
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
  memcpy(srd_fake_local(f->from->device, piece), (const uint8_t *)(uintptr_t)f->work.address, piece->bytes);
  srd_net.counts.reads++;
  return SRD_OK;
}

/* FALSE: it finds no buffer. */
static gboolean do_send(struct flight *f, struct srd_qp *to)
{
  uint32_t bytes = 0;
  if (to->receives->len == 0) {
    srd_net.counts.overruns += !f->overran;
    f->overran = TRUE;
    return FALSE;
  }
  struct posted posted = g_array_index(to->receives, struct posted, 0);
  g_array_remove_index(to->receives, 0);
  uint8_t *at = srd_fake_local(to->device, &posted.piece);
  for (uint32_t i = 0; i < f->work.pieces; i++) {
    const struct srd_piece_at *piece = &f->work.piece[i];
    srd_fake_check(piece->bytes <= posted.piece.bytes - bytes, "a datagram is longer than its buffer");
    memcpy(at + bytes, srd_fake_local(f->from->device, piece), piece->bytes);
    bytes += piece->bytes;
  }
  complete(to->device, posted.id, SRD_OK, NULL, bytes);
  srd_net.counts.datagrams++;
  return TRUE;
}

static void deliver(guint which)
{
  struct flight *f = &g_array_index(srd_net.flights, struct flight, which);
  struct srd_qp *qp = find_qp(f);
  enum srd_status status = SRD_OK;
  const char *why = NULL;
  if (f->from->device->dead) {
    g_array_remove_index_fast(srd_net.flights, which);
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
    srd_net.counts.stray += !f->work.read;
  } else if (f->work.read) {
    status = do_read(f, qp->device, &why);
  } else if (!do_send(f, qp)) {
    return;
  }
  f->from->sends--;
  complete(f->from->device, f->work.id, status, why, 0);
  g_array_remove_index_fast(srd_net.flights, which);
}

static gpointer fabric(gpointer unused)
{
  g_mutex_lock(&srd_net.lock);
  while (!srd_net.stop) {
    if (srd_net.flights->len == 0 || srd_net.held) {
      g_cond_wait(&srd_net.changed, &srd_net.lock);
      continue;
    }
    deliver((guint)g_rand_int_range(srd_net.random, 0, (gint32)srd_net.flights->len));
    if (g_rand_int_range(srd_net.random, 0, 4) == 0) {
      g_mutex_unlock(&srd_net.lock);
      sched_yield();
      g_mutex_lock(&srd_net.lock);
    }
  }
  g_mutex_unlock(&srd_net.lock);
  return unused;
}

/* --- what the test sets */

void srd_fake_begin(uint32_t seed)
{
  g_mutex_init(&srd_net.lock);
  g_cond_init(&srd_net.changed);
  srd_net.random = g_rand_new_with_seed(seed);
  srd_net.devices = g_ptr_array_new();
  srd_net.memories = g_ptr_array_new();
  srd_net.flights = g_array_new(FALSE, FALSE, sizeof(struct flight));
  srd_net.next_qp = srd_net.next_key = 17;
  srd_net.stop = srd_net.held = srd_net.rush = FALSE;
  srd_net.counts = (struct srd_fake_counts){0};
  srd_fake_depths(512, 1024, 16384);
  srd_net.thread = g_thread_new("fabric", fabric, NULL);
}

void srd_fake_end(void)
{
  g_mutex_lock(&srd_net.lock);
  srd_net.stop = TRUE;
  g_cond_signal(&srd_net.changed);
  g_mutex_unlock(&srd_net.lock);
  g_thread_join(srd_net.thread);
  cr_expect_eq(srd_net.devices->len, 0, "devices are left");
  cr_expect_eq(srd_net.memories->len, 0, "registered memory is left");
  cr_expect_eq(srd_net.flights->len, 0, "work is left");
  cr_expect_eq(srd_net.counts.addresses, 0, "addresses are left");
  g_ptr_array_unref(srd_net.devices);
  g_ptr_array_unref(srd_net.memories);
  g_array_unref(srd_net.flights);
  g_rand_free(srd_net.random);
  g_cond_clear(&srd_net.changed);
  g_mutex_clear(&srd_net.lock);
}

void srd_fake_fail(uint32_t n)
{
  g_mutex_lock(&srd_net.lock);
  srd_net.fail = n;
  g_mutex_unlock(&srd_net.lock);
}

void srd_fake_depths(uint32_t sends, uint32_t receives, uint32_t completions)
{
  srd_net.depths = (struct srd_caps){
      .sends_max = sends, .receives_max = receives, .completions_max = completions, .gbit_s = 100};
}

void srd_fake_hold(gboolean held)
{
  g_mutex_lock(&srd_net.lock);
  srd_net.held = held;
  g_cond_signal(&srd_net.changed);
  g_mutex_unlock(&srd_net.lock);
}

void srd_fake_rush(void)
{
  g_mutex_lock(&srd_net.lock);
  srd_net.rush = TRUE;
  g_mutex_unlock(&srd_net.lock);
}

void srd_fake_rush_now(void)
{
  for (guint i = srd_net.rush ? srd_net.flights->len : 0; i-- > 0;)
    deliver(i);
  srd_net.rush = FALSE;
}

void srd_fake_mute(uint8_t gid)
{
  uint8_t whole[16] = {[15] = gid};
  g_mutex_lock(&srd_net.lock);
  struct srd_device *device = find_device(whole);
  cr_assert(device != NULL);
  device->mute = TRUE;
  g_mutex_unlock(&srd_net.lock);
}

void srd_fake_kill(uint8_t gid)
{
  uint8_t whole[16] = {[15] = gid};
  g_mutex_lock(&srd_net.lock);
  struct srd_device *device = find_device(whole);
  cr_assert(device != NULL);
  device->dead = TRUE;
  g_mutex_unlock(&srd_net.lock);
}

void srd_fake_break(uint8_t gid, gboolean by_event)
{
  uint8_t whole[16] = {[15] = gid};
  uint64_t one = 1;
  g_mutex_lock(&srd_net.lock);
  struct srd_device *device = find_device(whole);
  cr_assert(device && device->qps->len == 1);
  struct srd_qp *qp = g_ptr_array_index(device->qps, 0);
  qp->broken = TRUE;
  if (by_event) {
    device->event_qp = qp;
    cr_assert_eq(write(device->event_fd, &one, sizeof one), sizeof one);
  }
  g_mutex_unlock(&srd_net.lock);
}

void srd_fake_counts(struct srd_fake_counts *counts)
{
  g_mutex_lock(&srd_net.lock);
  *counts = srd_net.counts;
  for (guint i = 0; i < srd_net.flights->len; i++)
    counts->segments += g_array_index(srd_net.flights, struct flight, i).work.pieces == 2;
  g_mutex_unlock(&srd_net.lock);
}
