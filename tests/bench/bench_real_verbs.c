/* The verbs transport between two RDMA devices of this machine: reads of one size out of a shelf's memory
 * into a reader's, all asked for at once, as ib_read_bw does with messages. Prints MiB/s, from the first
 * read's posting to the last one's end; connections stand before. Every byte is checked afterwards.
 *
 * tests/rxe/pairs.sh runs it beside ib_read_bw. */
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend_real/transport.h"

#define SHELF     1
#define READER    ACTOR(ACTOR_GPU_SERVER, 0)
#define MODEL     0
#define WARM      16 /* reads before those that count: they open the lines */
#define READS_MAX 1000000
#define ARENA_MAX (1ULL << 30)

static struct {
  char *shelf_device, *reader_device, *address;
  gint bytes, reads, connections;
} options = {.bytes = 65536, .reads = 1000};

static const struct ticket_secret secret = {.key = "the benchmark's own"};

/* --- the control plane's place is taken by a thread that carries letters, in order */

struct letter {
  gboolean to_shelf;
  size_t size;
  uint8_t bytes[LETTER_BYTES_MAX];
};

struct bench {
  const struct transport_ops *ops;
  struct shelf *shelf;
  struct reader *reader;
  struct memory from, to;
  GThread *postman;
  GMutex lock; /* of what follows */
  GCond changed;
  GQueue letters; /* of struct letter */
  gboolean over;
  uint64_t wanted, ended, failed;
};

static void send_letter(struct bench *bench, gboolean to_shelf, const void *bytes, size_t size)
{
  struct letter *letter = g_new(struct letter, 1);
  letter->to_shelf = to_shelf;
  letter->size = size;
  memcpy(letter->bytes, bytes, size);
  g_mutex_lock(&bench->lock);
  g_queue_push_tail(&bench->letters, letter);
  g_cond_broadcast(&bench->changed);
  g_mutex_unlock(&bench->lock);
}

static void post_to_reader(void *context, actor_id reader, const void *letter, size_t size)
{
  (void)reader;
  send_letter(context, FALSE, letter, size);
}

static void post_to_shelf(void *context, uint32_t server, const void *letter, size_t size)
{
  (void)server;
  send_letter(context, TRUE, letter, size);
}

static struct letter *next_letter(struct bench *bench)
{
  g_mutex_lock(&bench->lock);
  while (!bench->over && g_queue_is_empty(&bench->letters))
    g_cond_wait(&bench->changed, &bench->lock);
  struct letter *letter = bench->over ? NULL : g_queue_pop_head(&bench->letters);
  g_mutex_unlock(&bench->lock);
  return letter;
}

static gpointer carry_letters(gpointer data)
{
  struct bench *bench = data;
  for (struct letter *letter; (letter = next_letter(bench)); g_free(letter)) {
    if (letter->to_shelf)
      bench->ops->shelf_letter(bench->shelf, READER, letter->bytes, letter->size);
    else
      bench->ops->reader_letter(bench->reader, SHELF, letter->bytes, letter->size);
  }
  return NULL;
}

/* --- both ends */

static G_GNUC_NORETURN void die(const char *what, const GError *error)
{
  fprintf(stderr, "%s%s%s\n", what, error ? ": " : "", error ? error->message : "");
  exit(1);
}

static uint64_t word(uint64_t index)
{
  return index * 0x9e3779b97f4a7c15;
}

static struct memory arena_memory(uint64_t bytes)
{
  void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (base == MAP_FAILED)
    die("no memory", NULL);
  return (struct memory){.base = base, .bytes = bytes};
}

static void read_ended(void *context, uint64_t tag, gboolean good)
{
  struct bench *bench = context;
  (void)tag;
  g_mutex_lock(&bench->lock);
  bench->ended++;
  bench->failed += !good;
  if (bench->ended == bench->wanted) /* who waits need not wake before */
    g_cond_broadcast(&bench->changed);
  g_mutex_unlock(&bench->lock);
}

static void open_shelf(struct bench *bench)
{
  g_autoptr(GError) error = NULL;
  struct shelf_config config = {
      .memory = bench->from,
      .address = options.address,
      .index = SHELF,
      .options = {.connections = (uint32_t)options.connections, .rdma_device = options.shelf_device},
      .post = post_to_reader,
      .context = bench};
  for (uint64_t i = 0; i < bench->from.bytes / 8; i++)
    ((uint64_t *)bench->from.base)[i] = word(i);
  bench->shelf = bench->ops->shelf_new(&config, &error);
  if (!bench->shelf)
    die("the shelf", error);
  struct range range = {0, bench->from.bytes};
  bench->ops->shelf_serve(bench->shelf, MODEL, 0, bench->from.bytes,
                          &(struct ranges){.range = &range, .count = 1});
  bench->ops->shelf_admit(bench->shelf, READER, &secret);
}

static void open_reader(struct bench *bench)
{
  g_autoptr(GError) error = NULL;
  struct reader_config config = {
      .memory = bench->to,
      .self = READER,
      .options = {.connections = (uint32_t)options.connections, .rdma_device = options.reader_device},
      .ended = read_ended,
      .post = post_to_shelf,
      .context = bench};
  bench->reader = bench->ops->reader_new(&config, &error);
  if (!bench->reader)
    die("the reader", error);
}

/* Letters that are written from here on are not carried any more. */
static void close_ends(struct bench *bench)
{
  g_mutex_lock(&bench->lock);
  bench->over = TRUE;
  g_cond_broadcast(&bench->changed);
  g_mutex_unlock(&bench->lock);
  g_thread_join(bench->postman);
  bench->ops->reader_free(bench->reader);
  bench->ops->shelf_free(bench->shelf);
  g_queue_clear_full(&bench->letters, g_free);
}

/* --- the run */

/* Seconds until all have ended. Keeping enough under way, and no more, is the transport's business. */
static double read_all(struct bench *bench, uint64_t reads)
{
  uint64_t slots = bench->to.bytes / options.bytes;
  gint64 start = g_get_monotonic_time();
  bench->ended = 0;
  bench->wanted = reads;
  for (uint64_t i = 0; i < reads; i++) {
    uint64_t at = i % slots * options.bytes;
    bench->ops->reader_read(bench->reader, &(struct transport_read){.server = SHELF,
                                                                    .model = MODEL,
                                                                    .offset = at,
                                                                    .gpu = NO_INDEX,
                                                                    .to = at,
                                                                    .bytes = options.bytes,
                                                                    .tag = i});
  }
  g_mutex_lock(&bench->lock);
  while (bench->ended < reads)
    g_cond_wait(&bench->changed, &bench->lock);
  g_mutex_unlock(&bench->lock);
  return (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
}

static void run(struct bench *bench)
{
  read_all(bench, MIN(WARM, options.reads));
  memset(bench->to.base, 0, bench->to.bytes);
  double seconds = read_all(bench, options.reads);
  if (bench->failed)
    die("reads failed", NULL);
  if (memcmp(bench->to.base, bench->from.base, bench->to.bytes) != 0)
    die("wrong bytes", NULL);
  printf("%.2f\n", (double)options.reads * options.bytes / seconds / (1 << 20));
}

static gboolean options_good(void)
{
  return options.bytes >= 8 && options.bytes <= (gint)READ_BYTES_MAX && options.bytes % 8 == 0 &&
         options.reads >= 1 && options.reads <= READS_MAX && options.connections >= 0 &&
         options.shelf_device && options.reader_device && options.address;
}

int main(int argc, char **argv)
{
  static const GOptionEntry entries[] = {
      {"shelf-device", 0, 0, G_OPTION_ARG_STRING, &options.shelf_device, "that is read from", "NAME"},
      {"reader-device", 0, 0, G_OPTION_ARG_STRING, &options.reader_device, "that reads", "NAME"},
      {"address", 0, 0, G_OPTION_ARG_STRING, &options.address, "of the shelf", "HOST:PORT"},
      {"bytes", 0, 0, G_OPTION_ARG_INT, &options.bytes, "a read, a multiple of 8 (65536)", "N"},
      {"reads", 0, 0, G_OPTION_ARG_INT, &options.reads, "that count (1000)", "N"},
      {"connections", 0, 0, G_OPTION_ARG_INT, &options.connections, "(the transport's own choice)", "N"},
      {0}};
  g_autoptr(GOptionContext) context = g_option_context_new(NULL);
  g_autoptr(GError) error = NULL;
  g_option_context_add_main_entries(context, entries, NULL);
  if (!g_option_context_parse(context, &argc, &argv, &error) || !options_good()) {
    fprintf(stderr, "%s\n", error ? error->message : "an option is missing or out of bounds");
    return 2;
  }
  struct bench bench = {.letters = G_QUEUE_INIT, .ops = transport_by_name("verbs", &error)};
  if (!bench.ops)
    die("verbs", error);
  uint64_t slots = MIN((uint64_t)options.reads, ARENA_MAX / options.bytes);
  bench.from = arena_memory(slots * options.bytes);
  bench.to = arena_memory(slots * options.bytes);
  open_shelf(&bench);
  open_reader(&bench);
  bench.postman = g_thread_new("letters", carry_letters, &bench);
  bench.ops->reader_peer(bench.reader, SHELF, bench.ops->shelf_address(bench.shelf), &secret);
  run(&bench);
  close_ends(&bench);
  return 0;
}
