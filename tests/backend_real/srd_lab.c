/* Shelves and readers of SRD on a fake EFA; see srd_lab.h. */
#include "srd_lab.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>

const struct srd_devices srd_devices_tried[] = {
    {TRUE, TRUE, 1 << 30, 8928},  /* RDMA READ */
    {TRUE, TRUE, 3000, 8928},     /* in small pieces */
    {FALSE, FALSE, 0, 8928},      /* datagrams */
    {FALSE, TRUE, 1 << 20, 1000}, /* one end has RDMA READ: datagrams, small ones */
    {TRUE, FALSE, 1 << 20, 4096}, /* the other has */
};

gboolean srd_by_datagram(const struct srd_devices *kind)
{
  return !kind->reader_reads || !kind->shelf_reads;
}

static uint8_t image_byte(uint32_t shelf, uint64_t at)
{
  return (uint8_t)(at * 7 + at / 253 + shelf * 101 + 1);
}

/* As it is unless a test writes to a shelf's. */
static const uint8_t *whole_image(uint32_t shelf)
{
  static uint8_t image[SHELVES][IMAGE];
  if (image[shelf][1] != image_byte(shelf, 1))
    for (uint32_t i = 0; i < IMAGE; i++)
      image[shelf][i] = image_byte(shelf, i);
  return image[shelf];
}

struct nic_gid srd_gid_of(uint8_t last)
{
  return (struct nic_gid){.raw = {[15] = last}, .type = "IB"};
}

static struct verbs_end *open_end(struct srd_lab *lab, const struct srd_devices *kind, gboolean serves,
                                  uint32_t index, GError **error)
{
  struct nic nic = {.device = "efa_0",
                    .port = 1,
                    .kind = NIC_SRD,
                    .mtu = kind->mtu,
                    .srd_reads = serves ? kind->shelf_reads : kind->reader_reads,
                    .srd_read_max = kind->read_max};
  struct memory memory = {.base = serves ? NULL : lab->arena[index], .bytes = ARENA, .dmabuf = -1};
  struct verbs_end_config config = {.nic = &nic,
                                    .gid = srd_gid_of((uint8_t)(index + (serves ? 1 : 101))),
                                    .serves = serves,
                                    .memory = serves ? NULL : &memory,
                                    .memories = serves ? 0 : 1};
  return srd_end_open(&srd_fake, &config, error);
}

gboolean srd_lab_introduce(struct srd_lab *lab, uint32_t r, uint32_t s, GError **error)
{
  struct srd_pair *pair = &lab->pair[r][s];
  const struct verbs_queue_ops *ops = &verbs_srd;
  uint8_t offer[VERBS_OFFER_BYTES];
  *pair = (struct srd_pair){0};
  if (!(pair->reader = ops->line_new(lab->reader[r], pair, error)) ||
      !(pair->shelf = ops->line_new(lab->shelf[s], pair, error)))
    return FALSE;
  size_t size = ops->offer(pair->reader, offer);
  if (!ops->connect(pair->shelf, offer, size, error))
    return FALSE;
  size = ops->offer(pair->shelf, offer);
  return ops->connect(pair->reader, offer, size, error);
}

gboolean srd_lab_open(struct srd_lab *lab, const struct srd_devices *kind, GError **error)
{
  for (uint32_t s = 0; s < SHELVES; s++)
    if (!(lab->shelf[s] = open_end(lab, kind, TRUE, s, error)) ||
        !verbs_srd.expose(lab->shelf[s], lab->image[s], IMAGE, &lab->exposed[s], error))
      return FALSE;
  for (uint32_t r = 0; r < READERS; r++)
    if (!(lab->reader[r] = open_end(lab, kind, FALSE, r, error)))
      return FALSE;
  for (uint32_t r = 0; r < READERS; r++)
    for (uint32_t s = 0; s < SHELVES; s++)
      if (!srd_lab_introduce(lab, r, s, error))
        return FALSE;
  return TRUE;
}

struct srd_lab *srd_lab_memory(uint32_t seed)
{
  struct srd_lab *lab = g_new0(struct srd_lab, 1);
  srd_fake_begin(seed);
  lab->random = g_rand_new_with_seed(seed);
  for (uint32_t s = 0; s < SHELVES; s++)
    lab->image[s] = g_memdup2(whole_image(s), IMAGE);
  for (uint32_t r = 0; r < READERS; r++) {
    lab->arena[r] = g_malloc(ARENA);
    memset(lab->arena[r], BLANK, ARENA);
  }
  return lab;
}

struct srd_lab *srd_lab_new(const struct srd_devices *kind, uint32_t seed)
{
  struct srd_lab *lab = srd_lab_memory(seed);
  GError *error = NULL;
  cr_assert(srd_lab_open(lab, kind, &error), "%s", error ? error->message : "no error told");
  return lab;
}

void srd_lab_close_ends(struct srd_lab *lab)
{
  for (uint32_t r = 0; r < READERS; r++)
    for (uint32_t s = 0; s < SHELVES; s++) {
      struct srd_pair *pair = &lab->pair[r][s];
      if (pair->reader)
        verbs_srd.line_free(pair->reader);
      if (pair->shelf)
        verbs_srd.line_free(pair->shelf);
      *pair = (struct srd_pair){0};
    }
  for (uint32_t r = 0; r < READERS; r++)
    if (lab->reader[r])
      verbs_srd.close(lab->reader[r]);
  for (uint32_t s = 0; s < SHELVES; s++)
    if (lab->shelf[s]) {
      verbs_srd.conceal(lab->shelf[s], &lab->exposed[s]);
      verbs_srd.close(lab->shelf[s]);
    }
  memset(lab->reader, 0, sizeof lab->reader);
  memset(lab->shelf, 0, sizeof lab->shelf);
  memset(lab->exposed, 0, sizeof lab->exposed);
}

void srd_lab_free(struct srd_lab *lab)
{
  srd_lab_close_ends(lab);
  srd_fake_end();
  for (uint32_t s = 0; s < SHELVES; s++)
    g_free(lab->image[s]);
  for (uint32_t r = 0; r < READERS; r++)
    g_free(lab->arena[r]);
  g_rand_free(lab->random);
  g_free(lab);
}

/* --- reads */

uint64_t srd_lab_ask_as(struct srd_lab *lab, uint32_t r, uint32_t s, uint32_t at, uint32_t bytes,
                        struct verbs_read *read)
{
  struct srd_wanted *w = &lab->wanted[lab->asked];
  cr_assert(lab->asked < READS_MAX && lab->used[r] + bytes + 16 <= ARENA);
  *w = (struct srd_wanted){r, s, at, lab->used[r] + 8, bytes, TRUE, FALSE};
  lab->used[r] += bytes + 16;
  *read = (struct verbs_read){.address = lab->exposed[s].address + at,
                              .to = w->to,
                              .key = lab->exposed[s].key,
                              .bytes = bytes,
                              .tag = lab->asked};
  lab->pair[r][s].under_way++;
  return lab->asked++;
}

uint64_t srd_lab_ask(struct srd_lab *lab, uint32_t r, uint32_t s, uint32_t at, uint32_t bytes)
{
  struct verbs_read read;
  uint64_t tag = srd_lab_ask_as(lab, r, s, at, bytes, &read);
  verbs_srd.post(lab->pair[r][s].reader, &read, 1);
  return tag;
}

void srd_lab_ask_any(struct srd_lab *lab, uint32_t r, uint32_t s, uint32_t bytes_max)
{
  uint32_t bytes = (uint32_t)g_rand_int_range(lab->random, 1, (gint32)bytes_max + 1);
  srd_lab_ask(lab, r, s, (uint32_t)g_rand_int_range(lab->random, 0, (gint32)(IMAGE - bytes + 1)), bytes);
}

void srd_lab_end(struct srd_lab *lab, const struct verbs_done *done)
{
  struct srd_wanted *w = &lab->wanted[done->tag];
  struct srd_pair *pair = done->line->context;
  cr_assert(done->tag < lab->asked && w->open, "a read ended twice");
  cr_assert(pair == &lab->pair[w->reader][w->shelf] && done->line == pair->reader);
  w->open = FALSE;
  w->good = done->good;
  lab->ended++;
  lab->good += done->good;
  pair->under_way--;
  cr_assert(!w->good || memcmp(lab->arena[w->reader] + w->to, whole_image(w->shelf) + w->at, w->bytes) == 0,
            "a wrong byte");
}

gboolean srd_lab_poll(struct srd_lab *lab)
{
  struct verbs_done done[5];
  uint32_t total = 0;
  for (uint32_t r = 0; r < READERS; r++)
    for (gboolean more = TRUE; more;) {
      uint32_t count = verbs_srd.poll(lab->reader[r], done, G_N_ELEMENTS(done), &more);
      total += count;
      for (uint32_t i = 0; i < count; i++)
        srd_lab_end(lab, &done[i]);
    }
  return total > 0;
}

/* As the transport sleeps: what no descriptor tells of would never end. */
static void sleep_on(struct srd_lab *lab, gint64 deadline)
{
  struct pollfd fd[READERS * VERBS_FDS];
  uint32_t of[READERS * VERBS_FDS], fds = 0;
  for (uint32_t r = 0; r < READERS; r++)
    verbs_srd.arm(lab->reader[r]);
  if (srd_lab_poll(lab))
    return;
  for (uint32_t r = 0; r < READERS; r++) {
    int own[VERBS_FDS];
    uint32_t count = verbs_srd.fds(lab->reader[r], own);
    for (uint32_t i = 0; i < count; i++, fds++) {
      fd[fds] = (struct pollfd){.fd = own[i], .events = POLLIN};
      of[fds] = r;
    }
  }
  cr_assert_gt(poll(fd, fds, (int)MAX((deadline - g_get_monotonic_time()) / 1000, 0)), 0,
               "%u of %u reads never ended", lab->asked - lab->ended, lab->asked);
  for (uint32_t i = 0; i < fds; i++)
    if (fd[i].revents)
      verbs_srd.woken(lab->reader[of[i]]);
}

void srd_lab_turn(struct srd_lab *lab, gint64 deadline)
{
  if (!srd_lab_poll(lab))
    sleep_on(lab, deadline);
}

void srd_lab_wait(struct srd_lab *lab, uint32_t ended)
{
  gint64 deadline = g_get_monotonic_time() + WAIT_US;
  while (lab->ended < ended)
    srd_lab_turn(lab, deadline);
}

/* What did not land, or not to the end, may have written in its place, and nowhere else. */
void srd_lab_check_beside(struct srd_lab *lab)
{
  g_autofree uint8_t *blank = g_malloc(ARENA);
  memset(blank, BLANK, ARENA);
  for (uint32_t i = 0; i < lab->asked; i++)
    memset(lab->arena[lab->wanted[i].reader] + lab->wanted[i].to, BLANK, lab->wanted[i].bytes);
  for (uint32_t r = 0; r < READERS; r++)
    cr_assert_eq(memcmp(lab->arena[r], blank, ARENA), 0, "written beside its place");
}

void srd_lab_check_fabric(void)
{
  struct srd_fake_counts counts;
  srd_fake_counts(&counts);
  cr_expect_eq(counts.overruns, 0, "datagrams that found no buffer");
}
