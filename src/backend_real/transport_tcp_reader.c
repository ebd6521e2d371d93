/* The reader of the TCP transport: peers, queues, and which line gets which read; see
 * transport_tcp_reader.h. */
#include "backend_real/transport_tcp_reader.h"

#include <string.h>

#include "backend_real/transport_tcp.h"
#include "core/error.h"

#define REOPEN_NS 1000000000 /* lines that broke while others hold are opened again after that */

/* --- under the lock */

static void fail_read(struct reader *reader, const struct read *read)
{
  read_queue_push(&reader->failed, 0, read);
  poller_wake(reader->poller[0], &reader->usher);
}

static void fail_queues(struct reader *reader, struct peer *peer)
{
  read_queue_move(&peer->queue, peer->server, &reader->failed);
  read_queue_move(&reader->waiting, peer->server, &reader->failed);
  poller_wake(reader->poller[0], &reader->usher);
}

static gboolean line_takes(const struct line *line, const struct read *read)
{
  uint64_t window = line->reader->in ? LINE_WINDOW_PACED : LINE_WINDOW;
  return line->end - line->begin < LINE_READS &&
         (line->under_way == 0 || line->under_way + read->bytes <= window);
}

/* The line with the least to do, among those that take the read. */
static struct line *choose_line(const struct peer *peer, uint32_t connections, const struct read *read)
{
  struct line *best = NULL;
  for (uint32_t i = 0; i < connections; i++) {
    struct line *line = peer->line[i];
    if (line && line_takes(line, read) && (!best || line->under_way < best->under_way))
      best = line;
  }
  return best;
}

/* Gives lines what they take. Wakes them, but not `self`, whose turn it is. */
static void give(struct reader *reader, struct peer *peer, const struct line *self)
{
  const struct read *read;
  while ((read = read_queue_first(&peer->queue))) {
    struct line *line = choose_line(peer, reader->connections, read);
    if (!line)
      return;
    line->read[line->end++ % LINE_READS] = *read;
    line->under_way += read->bytes;
    read_queue_pop(&peer->queue);
    if (line != self)
      poller_wake(line->poller, &line->pollee);
  }
}

static struct peer *find_peer(const struct reader *reader, uint32_t server)
{
  return g_hash_table_lookup(reader->peers, GUINT_TO_POINTER(server));
}

/* From when it waits: what this thread is late for, the link is not. */
static void put_on_link(const struct reader *reader, struct read *read)
{
  read->slot = pace_put(reader->in, WIRE_REPLY_BYTES + read->bytes + WIRE_END_BYTES, read->since_ns);
  read->ask_ns = read->slot.begin_ns - ASK_AHEAD_NS;
}

/* Gives the link, and lines, what they may have by now. When the link may have more; 0: nothing waits. */
static gint64 admit(struct reader *reader, const struct line *self)
{
  const struct read *first;
  while ((first = read_queue_first(&reader->waiting))) {
    gint64 from_ns = pace_free_ns(reader->in) - reader->ahead_ns;
    if (from_ns > poller_clock())
      return from_ns;
    struct read read = *first;
    struct peer *peer = find_peer(reader, read.server);
    read_queue_pop(&reader->waiting);
    put_on_link(reader, &read);
    read_queue_push(&peer->queue, 0, &read);
    give(reader, peer, self);
  }
  return 0;
}

static void open_line(struct reader *reader, struct peer *peer, uint32_t i, uint32_t model)
{
  struct line *line = g_new0(struct line, 1);
  line->pollee = POLLEE;
  line->reader = reader;
  line->poller = reader->poller[reader->next_poller++ % reader->pollers];
  line->server = peer->server;
  line->address = g_strdup(peer->address);
  line->secret = peer->secret;
  line->first_model = model;
  line->peer = peer;
  line->next = reader->first;
  if (reader->first)
    reader->first->before = line;
  reader->first = line;
  peer->line[i] = line;
  peer->lines++;
  poller_wake(line->poller, &line->pollee);
}

static void open_lines(struct reader *reader, struct peer *peer, uint32_t model)
{
  if (peer->lines == reader->connections || (peer->lines > 0 && poller_clock() < peer->lost_ns + REOPEN_NS))
    return;
  for (uint32_t i = 0; i < reader->connections; i++)
    if (!peer->line[i])
      open_line(reader, peer, i, model);
}

static void detach(struct peer *peer, struct line *line)
{
  for (uint32_t i = 0; i < LINES_MAX; i++)
    if (peer->line[i] == line)
      peer->line[i] = NULL;
  peer->lines--;
  line->peer = NULL;
}

static void drop(struct reader *reader, struct peer *peer)
{
  peer->usable = FALSE;
  for (uint32_t i = 0; i < LINES_MAX; i++) {
    struct line *line = peer->line[i];
    if (!line)
      continue;
    detach(peer, line);
    g_atomic_int_set(&line->doomed, TRUE);
    poller_wake(line->poller, &line->pollee);
  }
  fail_queues(reader, peer);
}

/* --- what lines ask for */

void reader_ended(struct line *line, uint64_t due)
{
  struct reader *reader = line->reader;
  uint64_t tag[LINE_READS];
  uint32_t ended = due - line->begin, first = line->begin % LINE_READS;
  g_mutex_lock(&reader->lock);
  while (line->came < line->answered)
    line->under_way -= line->read[line->came++ % LINE_READS].bytes;
  for (uint32_t i = 0; i < ended; i++)
    tag[i] = line->read[line->begin++ % LINE_READS].tag;
  if (line->peer)
    give(reader, line->peer, line);
  admit(reader, line);
  g_mutex_unlock(&reader->lock);
  for (uint32_t i = 0; i < ended; i++)
    reader->ended(reader->context, tag[i], line->good[(first + i) % LINE_READS]);
}

uint64_t reader_serial(struct line *line)
{
  g_mutex_lock(&line->reader->lock);
  uint64_t serial = line->peer ? ++line->peer->serial : 0;
  g_mutex_unlock(&line->reader->lock);
  return serial;
}

uint64_t reader_given(struct line *line)
{
  g_mutex_lock(&line->reader->lock);
  uint64_t end = line->end;
  g_mutex_unlock(&line->reader->lock);
  return end;
}

void reader_lose(struct line *line, const char *why)
{
  struct reader *reader = line->reader;
  if (why)
    transport_log(&reader->log, "lost a data connection to memory server %u (%s): %s", line->server,
                  line->address, why);
  g_mutex_lock(&reader->lock);
  struct peer *peer = line->peer;
  if (peer) {
    detach(peer, line);
    peer->lost_ns = poller_clock();
    if (!peer->lines)
      fail_queues(reader, peer);
  }
  *(line->before ? &line->before->next : &reader->first) = line->next;
  if (line->next)
    line->next->before = line->before;
  g_mutex_unlock(&reader->lock);
  poller_remove(line->poller, &line->pollee);
  for (uint64_t n = line->begin; n < line->end; n++)
    reader->ended(reader->context, line->read[n % LINE_READS].tag,
                  n < line->answered && line->good[n % LINE_READS]);
  g_free(line->address);
  g_free(line);
}

/* Ends what has failed without a line. */
static void bury(struct reader *reader)
{
  const struct read *read;
  g_mutex_lock(&reader->lock);
  struct read_queue failed = reader->failed;
  reader->failed = (struct read_queue){0};
  g_mutex_unlock(&reader->lock);
  for (; (read = read_queue_first(&failed)); read_queue_pop(&failed))
    reader->ended(reader->context, read->tag, FALSE);
  read_queue_clear(&failed);
}

static enum turn reader_turn(void *context, struct pollee *pollee, gint64 *again_ns)
{
  struct reader *reader = context;
  if (pollee != &reader->usher)
    return line_turn((struct line *)pollee, again_ns);
  bury(reader);
  g_mutex_lock(&reader->lock);
  *again_ns = admit(reader, NULL);
  g_mutex_unlock(&reader->lock);
  return *again_ns ? TURN_LATER : TURN_BLOCKED;
}

/* --- the reader */

static void peer_free(void *data)
{
  struct peer *peer = data;
  read_queue_clear(&peer->queue);
  g_free(peer->address);
  g_free(peer);
}

struct reader *tcp_reader_new(const struct reader_config *config, GError **error)
{
  const struct transport_options *options = &config->options;
  for (uint32_t i = 0; i < config->gpus; i++)
    if (!config->gpu_memory[i].base)
      return input_error(
                 error, NULL, 0,
                 "transport tcp cannot write into the memory of GPU %u: only RDMA can (or the host device, "
                 "whose memory the processor sees)",
                 i),
             NULL;
  struct reader *reader = g_new0(struct reader, 1);
  reader->memory = config->memory;
  reader->gpus = config->gpus;
  reader->gpu_memory = g_memdup2(config->gpu_memory, config->gpus * sizeof *config->gpu_memory);
  reader->self = config->self;
  reader->ended = config->ended;
  reader->context = config->context;
  reader->connections = MIN(options->connections ? options->connections : TCP_CONNECTIONS, LINES_MAX);
  reader->usher = POLLEE;
  reader->peers = g_hash_table_new_full(NULL, NULL, NULL, peer_free);
  g_mutex_init(&reader->lock);
  if (options->pace_bytes_s > 0) {
    reader->in = pace_new(options->pace_bytes_s);
    reader->out = pace_new(options->pace_bytes_s);
    reader->ahead_ns = ASK_AHEAD_NS + (gint64)MIN(READ_BYTES_MAX / options->pace_bytes_s * 1e9, 1e15);
  }
  reader->pollers = tcp_threads(options);
  reader->poller = g_new0(struct poller *, reader->pollers);
  for (uint32_t i = 0; i < reader->pollers; i++)
    if (!(reader->poller[i] = poller_new("tcp-reader", reader_turn, reader, error))) {
      tcp_reader_free(reader);
      return NULL;
    }
  for (uint32_t i = 0; i < reader->pollers; i++)
    poller_start(reader->poller[i]);
  return reader;
}

void tcp_reader_free(struct reader *reader)
{
  if (!reader)
    return;
  for (uint32_t i = 0; i < reader->pollers; i++)
    if (reader->poller[i])
      poller_stop(reader->poller[i]);
  while (reader->first)
    reader_lose(reader->first, NULL);
  bury(reader);
  read_queue_clear(&reader->waiting);
  for (uint32_t i = 0; i < reader->pollers; i++)
    poller_free(reader->poller[i]);
  g_free(reader->poller);
  g_hash_table_destroy(reader->peers);
  g_mutex_clear(&reader->lock);
  pace_free(reader->in);
  pace_free(reader->out);
  g_free(reader->gpu_memory);
  g_free(reader);
}

static void set_peer(struct peer *peer, const char *address, const struct ticket_secret *secret)
{
  g_free(peer->address);
  peer->address = g_strdup(address);
  /* The shelf remembers the serials of a secret. */
  if (memcmp(&peer->secret, secret, sizeof *secret) != 0) {
    peer->secret = *secret;
    peer->serial = 0;
  }
  peer->usable = TRUE;
}

void tcp_reader_peer(struct reader *reader, uint32_t server, const char *address,
                     const struct ticket_secret *secret)
{
  g_mutex_lock(&reader->lock);
  struct peer *peer = find_peer(reader, server);
  if (!peer) {
    peer = g_new0(struct peer, 1);
    peer->server = server;
    g_hash_table_insert(reader->peers, GUINT_TO_POINTER(server), peer);
  } else if (peer->usable &&
             (strcmp(peer->address, address) != 0 || memcmp(&peer->secret, secret, sizeof *secret) != 0)) {
    drop(reader, peer);
  }
  set_peer(peer, address, secret);
  g_mutex_unlock(&reader->lock);
}

void tcp_reader_drop(struct reader *reader, uint32_t server)
{
  g_mutex_lock(&reader->lock);
  struct peer *peer = find_peer(reader, server);
  if (peer)
    drop(reader, peer);
  g_mutex_unlock(&reader->lock);
}

static const struct memory *memory_of(const struct reader *reader, uint32_t gpu)
{
  static const struct memory none;
  return gpu == NO_INDEX ? &reader->memory : gpu < reader->gpus ? &reader->gpu_memory[gpu] : &none;
}

/* GPU memory that the processor does not see has no base. */
static gboolean allowed(const struct memory *memory, uint64_t to, const struct read *read)
{
  return read->bytes > 0 && read->bytes <= READ_BYTES_MAX && memory->base && to <= memory->bytes &&
         read->bytes <= memory->bytes - to && read->offset <= UINT64_MAX - read->bytes;
}

/* Where others wait already, the usher comes anyway. */
static void wait_for_link(struct reader *reader, uint32_t party, struct read *read)
{
  read->since_ns = poller_clock();
  gboolean alone = !read_queue_first(&reader->waiting);
  read_queue_push(&reader->waiting, party, read);
  if (admit(reader, NULL) && alone)
    poller_wake(reader->poller[0], &reader->usher);
}

void tcp_reader_read(struct reader *reader, const struct transport_read *what)
{
  const struct memory *memory = memory_of(reader, what->gpu);
  struct read read = {.offset = what->offset,
                      .tag = what->tag,
                      .server = what->server,
                      .model = what->model,
                      .bytes = what->bytes};
  g_mutex_lock(&reader->lock);
  struct peer *peer = find_peer(reader, what->server);
  if (peer && peer->usable && allowed(memory, what->to, &read)) {
    read.at = memory->base + what->to;
    open_lines(reader, peer, what->model);
    if (reader->in) {
      wait_for_link(reader, what->party, &read);
    } else {
      read_queue_push(&peer->queue, what->party, &read);
      give(reader, peer, NULL);
    }
  } else {
    fail_read(reader, &read);
  }
  g_mutex_unlock(&reader->lock);
}

uint64_t tcp_reader_bytes(const struct reader *reader)
{
  return __atomic_load_n(&reader->bytes, __ATOMIC_RELAXED);
}

void tcp_reader_state(struct reader *reader, struct transport_state *state)
{
  *state = (struct transport_state){.connections = 0};
  g_mutex_lock(&reader->lock);
  for (const struct line *line = reader->first; line; line = line->next)
    state->connections += line->peer != NULL;
  g_mutex_unlock(&reader->lock);
}
