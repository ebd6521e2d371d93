/* A shelf and a reader in one process; see transport_lab.h. */
#include <string.h>
#include "transport_lab.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

static struct memory memory_new(uint64_t bytes, int fill)
{
  struct memory memory = {mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                          bytes};
  cr_assert(memory.base != MAP_FAILED);
  memset(memory.base, fill, bytes);
  return memory;
}

static void read_ended(void *context, uint64_t tag, gboolean good)
{
  struct lab *lab = context;
  g_mutex_lock(&lab->lock);
  cr_assert_eq(lab->end[tag], LAB_PENDING, "read %u ended twice", (unsigned)tag);
  lab->end[tag] = good ? LAB_GOOD : LAB_FAILED;
  *(good ? &lab->good : &lab->failed) += 1;
  g_cond_signal(&lab->changed);
  g_mutex_unlock(&lab->lock);
}

struct lab *lab_new_reader(const struct transport_ops *ops, uint64_t from_bytes, uint64_t to_bytes,
                           const struct transport_options *options)
{
  struct lab *lab = g_new0(struct lab, 1);
  lab->ops = ops;
  lab->from = memory_new(from_bytes, 0x11);
  lab->to = memory_new(to_bytes, LAB_BLANK);
  lab->random = g_rand_new_with_seed(7);
  g_mutex_init(&lab->lock);
  g_cond_init(&lab->changed);
  cr_assert(ticket_secret_random(&lab->secret, NULL));
  struct reader_config config = {.memory = lab->to, .self = LAB_READER, .ended = read_ended, .context = lab};
  if (options)
    config.options = *options;
  lab->reader = ops->reader_new(&config, NULL);
  cr_assert(lab->reader);
  return lab;
}

void lab_open_shelf(struct lab *lab, const char *address, const struct transport_options *options)
{
  struct shelf_config config = {.memory = lab->from, .address = address, .index = LAB_SHELF};
  if (options)
    config.options = *options;
  g_autoptr(GError) error = NULL;
  lab->shelf = lab->ops->shelf_new(&config, &error);
  cr_assert(lab->shelf, "%s", error ? error->message : "");
  lab->ops->shelf_admit(lab->shelf, LAB_READER, &lab->secret);
  lab->ops->reader_peer(lab->reader, LAB_SHELF, lab->ops->shelf_address(lab->shelf), &lab->secret);
}

struct lab *transport_lab_new(const struct transport_ops *ops, uint64_t from_bytes, uint64_t to_bytes,
                              const struct transport_options *options)
{
  struct lab *lab = lab_new_reader(ops, from_bytes, to_bytes, options);
  lab_open_shelf(lab, "127.0.0.1:0", options);
  return lab;
}

void transport_lab_free(struct lab *lab)
{
  lab->ops->reader_free(lab->reader);
  lab->ops->shelf_free(lab->shelf);
  munmap(lab->from.base, lab->from.bytes);
  munmap(lab->to.base, lab->to.bytes);
  g_rand_free(lab->random);
  g_mutex_clear(&lab->lock);
  g_cond_clear(&lab->changed);
  g_free(lab);
}

__attribute__((no_sanitize("thread"))) uint8_t lab_byte(uint32_t model, uint64_t offset)
{
  return (uint8_t)((offset + 1) * 0x9e3779b97f4a7c15 >> 56) + model * 37;
}

struct ranges lab_serve(struct lab *lab, uint32_t model, uint64_t offset, uint64_t bytes, uint64_t piece_max)
{
  struct ranges place = {0};
  for (uint64_t done = 0; done < bytes;) {
    uint64_t pages = g_rand_int_range(lab->random, 1, (gint32)(piece_max / ARENA_ALIGN) + 1);
    struct range range = {lab->used, MIN(pages * ARENA_ALIGN, bytes - done)};
    lab->used += (pages + 1) * ARENA_ALIGN;
    cr_assert(lab->used <= lab->from.bytes);
    for (uint64_t i = 0; i < range.length; i++)
      lab->from.base[range.offset + i] = lab_byte(model, offset + done + i);
    place.range = g_renew(struct range, place.range, place.count + 1);
    place.range[place.count++] = range;
    done += range.length;
  }
  lab->ops->shelf_serve(lab->shelf, model, offset, bytes, &place);
  return place;
}

void lab_read(struct lab *lab, uint32_t model, uint64_t offset, uint64_t to, uint32_t bytes, uint64_t tag)
{
  lab->ops->reader_read(lab->reader, LAB_SHELF, model, offset, NO_INDEX, to, bytes, tag);
}

void lab_wait(struct lab *lab, uint32_t ended)
{
  gint64 until = g_get_monotonic_time() + LAB_WAIT_NS / 1000;
  g_mutex_lock(&lab->lock);
  while (lab->good + lab->failed < ended)
    if (!g_cond_wait_until(&lab->changed, &lab->lock, until)) {
      g_mutex_unlock(&lab->lock);
      cr_assert_fail("%u of %u reads ended, no more came", lab->good + lab->failed, ended);
    }
  g_mutex_unlock(&lab->lock);
}

uint32_t lab_ended(struct lab *lab)
{
  g_mutex_lock(&lab->lock);
  uint32_t ended = lab->good + lab->failed;
  g_mutex_unlock(&lab->lock);
  return ended;
}

enum lab_end lab_end(struct lab *lab, uint64_t tag)
{
  g_mutex_lock(&lab->lock);
  enum lab_end end = lab->end[tag];
  g_mutex_unlock(&lab->lock);
  return end;
}

/* Local memory only, which ThreadSanitizer need not look at byte by byte; memcmp it knows. */
__attribute__((no_sanitize("thread"))) static void fill_block(uint8_t *block, uint32_t model, uint64_t offset,
                                                              uint64_t bytes)
{
  for (uint64_t i = 0; i < bytes; i++)
    block[i] = lab_byte(model, offset + i);
}

gboolean lab_has(const struct lab *lab, uint32_t model, uint64_t offset, uint64_t to, uint64_t bytes)
{
  uint8_t block[4096];
  for (uint64_t done = 0, now; done < bytes; done += now) {
    now = MIN(sizeof block, bytes - done);
    fill_block(block, model, offset + done, now);
    if (memcmp(lab->to.base + to + done, block, now) != 0)
      return FALSE;
  }
  return TRUE;
}

gboolean lab_blank(const struct lab *lab, uint64_t to, uint64_t bytes)
{
  const uint8_t *first = lab->to.base + to;
  return bytes == 0 || (*first == LAB_BLANK && memcmp(first, first + 1, bytes - 1) == 0);
}

void lab_run_over_transports(void (*test)(const struct transport_ops *))
{
  uint32_t ran = 0;
  for (const struct transport_ops *const *t = transports(); *t; t++) {
    const char *missing = (*t)->missing();
    if (missing) {
      cr_log_warn("transport %s is not tested here: %s", (*t)->name, missing);
      continue;
    }
    test(*t);
    ran++;
  }
  if (!ran)
    cr_skip("no transport can be used here");
}
