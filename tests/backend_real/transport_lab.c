/* A shelf and a reader in one process; see transport_lab.h. */
#include <string.h>
#include "transport_lab.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend_real/transport_verbs.h"
#include "srd_fake.h"

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
  lab->ended_us[tag] = g_get_monotonic_time();
  *(good ? &lab->good : &lab->failed) += 1;
  g_cond_signal(&lab->changed);
  g_mutex_unlock(&lab->lock);
}

/* --- letters
 * -------------------------------------------------------------------------------------------------------*/

static void post(struct lab *lab, gboolean to_shelf, actor_id peer, const void *letter, size_t size)
{
  struct lab_letter *l = g_new(struct lab_letter, 1);
  cr_assert_leq(size, LETTER_BYTES_MAX);
  *l = (struct lab_letter){to_shelf, peer, g_bytes_new(letter, size)};
  g_queue_push_tail(&lab->letters, l);
}

static void post_to_shelf(void *context, uint32_t server, const void *letter, size_t size)
{
  struct lab *lab = context;
  if (server == LAB_SHELF && lab->remote >= 0)
    (void)!send(lab->remote, letter, size, MSG_NOSIGNAL); /* whoever was killed hears nothing */
  else
    post(context, TRUE, LAB_READER, letter, size);
}

static void post_to_reader(void *context, actor_id reader, const void *letter, size_t size)
{
  post(context, FALSE, reader, letter, size);
}

static void deliver(struct lab *lab, const struct lab_letter *l)
{
  gsize size;
  const uint8_t *data = g_bytes_get_data(l->bytes, &size);
  if (l->to_shelf && lab->shelf)
    lab->ops->shelf_letter(lab->shelf, l->peer, data, size);
  else if (!l->to_shelf && lab->reader)
    lab->ops->reader_letter(lab->reader, LAB_SHELF, data, size);
}

static void receive(struct lab *lab)
{
  uint8_t letter[LETTER_BYTES_MAX];
  ssize_t size;
  while (lab->remote >= 0 && (size = recv(lab->remote, letter, sizeof letter, MSG_DONTWAIT)) > 0)
    lab->ops->reader_letter(lab->reader, LAB_SHELF, letter, (size_t)size);
}

void lab_letter_free(struct lab_letter *l)
{
  g_bytes_unref(l->bytes);
  g_free(l);
}

void lab_pump(struct lab *lab)
{
  struct lab_letter *l;
  receive(lab);
  while ((l = g_queue_pop_head(&lab->letters))) {
    if (!l->to_shelf && l->peer != LAB_READER) {
      g_queue_push_tail(&lab->caught, l);
      continue;
    }
    deliver(lab, l);
    lab_letter_free(l);
  }
}

/* --- the two ends
 * --------------------------------------------------------------------------------------------------*/

struct reader_config lab_reader_config(struct lab *lab, const struct transport_options *options)
{
  struct reader_config config = {.memory = lab->to,
                                 .self = LAB_READER,
                                 .ended = read_ended,
                                 .post = lab->ops->reader_letter ? post_to_shelf : NULL,
                                 .context = lab};
  if (options)
    config.options = *options;
  return config;
}

struct shelf_config lab_shelf_config(struct lab *lab, const char *address,
                                     const struct transport_options *options)
{
  struct shelf_config config = {.memory = lab->from,
                                .address = address,
                                .index = LAB_SHELF,
                                .post = lab->ops->shelf_letter ? post_to_reader : NULL,
                                .context = lab};
  if (options)
    config.options = *options;
  return config;
}

static struct lab *lab_new(const struct transport_ops *ops, uint64_t from_bytes, uint64_t to_bytes)
{
  struct lab *lab = g_new0(struct lab, 1);
  lab->ops = ops;
  lab->remote = -1;
  lab->from = memory_new(from_bytes, 0x11);
  lab->to = memory_new(to_bytes, LAB_BLANK);
  lab->random = g_rand_new_with_seed(7);
  g_mutex_init(&lab->lock);
  g_cond_init(&lab->changed);
  g_queue_init(&lab->letters);
  cr_assert(ticket_secret_random(&lab->secret, NULL));
  return lab;
}

static void lab_open_reader(struct lab *lab, const struct transport_options *options)
{
  struct reader_config config = lab_reader_config(lab, options);
  g_autoptr(GError) error = NULL;
  lab->reader = lab->ops->reader_new(&config, &error);
  cr_assert(lab->reader, "%s", error ? error->message : "");
}

struct lab *lab_new_reader(const struct transport_ops *ops, uint64_t from_bytes, uint64_t to_bytes,
                           const struct transport_options *options)
{
  struct lab *lab = lab_new(ops, from_bytes, to_bytes);
  lab_open_reader(lab, options);
  return lab;
}

void lab_open_shelf(struct lab *lab, const char *address, const struct transport_options *options)
{
  struct shelf_config config = lab_shelf_config(lab, address, options);
  g_autoptr(GError) error = NULL;
  lab->shelf = lab->ops->shelf_new(&config, &error);
  cr_assert(lab->shelf, "%s", error ? error->message : "");
  lab->ops->shelf_admit(lab->shelf, LAB_READER, &lab->secret);
  lab->ops->reader_peer(lab->reader, LAB_SHELF, lab->ops->shelf_address(lab->shelf), &lab->secret);
  lab_pump(lab);
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
  g_queue_clear_full(&lab->caught, (GDestroyNotify)lab_letter_free);
  g_queue_clear_full(&lab->letters, (GDestroyNotify)lab_letter_free);
  if (lab->remote >= 0)
    close(lab->remote);
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
  lab_pump(lab);
  return place;
}

void lab_read(struct lab *lab, uint32_t model, uint64_t offset, uint64_t to, uint32_t bytes, uint64_t tag)
{
  lab->ops->reader_read(lab->reader, &(struct transport_read){.server = LAB_SHELF,
                                                              .model = model,
                                                              .offset = offset,
                                                              .gpu = NO_INDEX,
                                                              .to = to,
                                                              .bytes = bytes,
                                                              .party = model,
                                                              .tag = tag});
  lab_pump(lab);
}

/* As long as reads end, however slowly. Letters from another process are looked for now and then. */
void lab_wait(struct lab *lab, uint32_t ended)
{
  uint32_t before = 0, have;
  gint64 until = 0;
  while ((have = lab_ended(lab)) < ended) {
    gint64 now = g_get_monotonic_time();
    if (until == 0 || have > before)
      until = now + LAB_WAIT_NS / 1000;
    before = have;
    lab_pump(lab);
    g_mutex_lock(&lab->lock);
    gboolean over = lab->good + lab->failed < ended &&
                    !g_cond_wait_until(&lab->changed, &lab->lock, lab->remote >= 0 ? now + 2000 : until) &&
                    now > until;
    uint32_t so_far = lab->good + lab->failed;
    g_mutex_unlock(&lab->lock);
    cr_assert(!over, "%u of %u reads ended, no more came", so_far, ended);
  }
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

/* --- a shelf in another process
 * -------------------------------------------------------------------------------------*/

static void answer(void *context, actor_id reader, const void *letter, size_t size)
{
  (void)reader;
  if (send(*(const int *)context, letter, size, MSG_NOSIGNAL) < 0)
    _exit(1);
}

static void serve_alone(struct lab *lab, const struct ticket_secret *secret, uint64_t bytes, int fd)
{
  const struct transport_ops *ops = lab->ops;
  struct shelf_config config = lab_shelf_config(lab, "127.0.0.1:0", NULL);
  config.memory = (struct memory){g_malloc0(bytes), bytes};
  config.post = ops->shelf_letter ? answer : NULL;
  config.context = &fd;
  struct shelf *shelf = ops->shelf_new(&config, NULL);
  if (!shelf)
    _exit(1);
  struct range range = {0, bytes};
  ops->shelf_serve(shelf, 1, 0, bytes, &(struct ranges){.range = &range, .count = 1});
  ops->shelf_admit(shelf, LAB_READER, secret);
  char text[64] = "";
  g_strlcpy(text, ops->shelf_address(shelf), sizeof text);
  if (send(fd, text, sizeof text, MSG_NOSIGNAL) != sizeof text)
    _exit(1);
  for (;;) {
    uint8_t letter[LETTER_BYTES_MAX];
    ssize_t size = recv(fd, letter, sizeof letter, 0);
    if (size <= 0)
      _exit(1); /* the test is over */
    ops->shelf_letter(shelf, LAB_READER, letter, (size_t)size);
  }
}

static pid_t fork_shelf(struct lab *lab, const struct ticket_secret *secret, uint64_t bytes, char address[64])
{
  int ends[2];
  cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    serve_alone(lab, secret, bytes, ends[1]);
  }
  close(ends[1]);
  lab->remote = ends[0];
  cr_assert_eq(recv(lab->remote, address, 64, 0), 64);
  return child;
}

struct lab *lab_new_apart(const struct transport_ops *ops, uint64_t to_bytes, uint64_t bytes,
                          const struct ticket_secret *secret, pid_t *child, char address[64])
{
  struct lab *lab = lab_new(ops, ARENA_ALIGN, to_bytes);
  *child = fork_shelf(lab, secret ? secret : &lab->secret, bytes, address);
  lab_open_reader(lab, NULL);
  return lab;
}

void lab_run_over_transports(void (*test)(const struct transport_ops *))
{
  uint32_t ran = 0;
  for (const struct transport_ops *const *t = transports(); *t; t++) {
    const char *missing = (*t)->missing();
    if (missing) {
      cr_log_info("transport %s is not tested here: %s", (*t)->name, missing);
      continue;
    }
    test(*t);
    ran++;
  }
  static const struct {
    gboolean reads;
    uint32_t read_max, datagram_max;
  } fakes[] = {{TRUE, 70000, 8928}, {FALSE, 0, 8928}};
  /* The fake stands in where there is no real device. */
  gboolean real = transport_verbs.missing() == NULL;
  for (guint i = 0; !real && i < G_N_ELEMENTS(fakes); i++) {
    srd_fake_begin(i + 1);
    srd_fake_machine(fakes[i].reads, fakes[i].read_max, fakes[i].datagram_max);
    test(&transport_verbs);
    srd_fake_machine(FALSE, 0, 0);
    srd_fake_end();
    ran++;
  }
  if (!ran)
    cr_skip("no transport can be used here");
}
