/* The reader of the verbs transport: peers, the NICs on the way to them, what is asked for; see
 * transport_verbs_reader.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/transport_verbs_reader.h"

#include <string.h>
#include <unistd.h>

#include "backend_real/bell.h"
#include "core/error.h"

/* --- lock
 * ----------------------------------------------------------------------------------------------------------*/

void verbs_lock(struct reader *reader)
{
  g_atomic_int_inc(&reader->waiting);
  g_mutex_lock(&reader->lock);
  g_atomic_int_add(&reader->waiting, -1);
}

void verbs_unlock(struct reader *reader)
{
  g_mutex_unlock(&reader->lock);
}

void verbs_wake(struct reader *reader)
{
  bell_ring(reader->bell);
}

/* What another thread than the reader's own has ended is told by that one. */
void verbs_unlock_and_wake(struct reader *reader)
{
  gboolean wake = reader->over.first != NULL;
  verbs_unlock(reader);
  if (wake)
    verbs_wake(reader);
}

struct peer *verbs_find_peer(const struct reader *reader, uint32_t server)
{
  return g_hash_table_lookup(reader->peers, GUINT_TO_POINTER(server));
}

/* --- ways to peers
 * -------------------------------------------------------------------------------------------------*/

static struct verbs_end *find_end(const struct reader *reader, const struct nic_choice *choice)
{
  for (uint32_t i = 0; i < reader->ends; i++)
    if (reader->end[i].choice.nic == choice->nic && reader->end[i].choice.gid.index == choice->gid.index)
      return reader->end[i].end;
  return NULL;
}

static struct verbs_end *open_end(struct reader *reader, const struct nic_choice *choice, GError **error)
{
  struct verbs_end *found = find_end(reader, choice);
  if (found)
    return found;
  const struct verbs_queue_ops *ops = verbs_queue_ops(choice->nic->kind);
  if (reader->ends == READER_ENDS_MAX || !ops || (reader->ops && reader->ops != ops)) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "RDMA device %s cannot be used beside the others",
                choice->nic->device);
    return NULL;
  }
  struct verbs_end_config config = {
      .nic = choice->nic, .gid = choice->gid, .memory = reader->memory, .memories = reader->memories};
  struct verbs_end *end = ops->open(&config, error);
  if (!end)
    return NULL;
  reader->ops = ops;
  reader->end[reader->ends++] = (struct reader_end){end, *choice};
  g_message("reads go by %s of RDMA device %s", ops->name, end->name);
  return end;
}

/* Opens, or finds open, the NICs on the way from own address `local`, NULL: any. */
static uint32_t open_ends(struct reader *reader, const char *local, struct verbs_end *end[READER_ENDS_MAX],
                          GError **error)
{
  uint32_t count = 0;
  g_autoptr(GArray) choices =
      verbs_choose(reader->nics, &reader->options, local, reader->memory[0].pci, error);
  for (guint i = 0; choices && i < MIN(choices->len, READER_ENDS_MAX); i++)
    if (!(end[count++] = open_end(reader, &g_array_index(choices, struct nic_choice, i), error)))
      return 0;
  return count;
}

/* Registering the arena with another NIC takes its time; it happens only where a route leads over one that
 * nobody guessed at the start. */
static void find_way(struct reader *reader, struct peer *peer)
{
  g_autoptr(GError) error = NULL;
  char local[46];
  peer->ends = 0;
  if (route_local_address(peer->address, local, &error))
    peer->ends = open_ends(reader, local, peer->end, &error);
  if (peer->ends == 0)
    transport_log(&reader->log, "no way to memory server %u (%s): %s", peer->server, peer->address,
                  error->message);
}

static struct peer *add_peer(struct reader *reader, uint32_t server)
{
  struct peer *peer = g_new0(struct peer, 1);
  peer->server = server;
  list_init(&peer->waiting);
  list_init(&peer->held);
  g_hash_table_insert(reader->peers, GUINT_TO_POINTER(server), peer);
  g_ptr_array_add(reader->in_order, peer);
  return peer;
}

static gboolean is_another(const struct peer *peer, const char *address, const struct ticket_secret *secret)
{
  return !peer->address || strcmp(peer->address, address) != 0 ||
         memcmp(&peer->secret, secret, sizeof *secret) != 0;
}

void verbs_reader_peer(struct reader *reader, uint32_t server, const char *address,
                       const struct ticket_secret *secret)
{
  verbs_lock(reader);
  struct peer *peer = verbs_find_peer(reader, server);
  if (!peer)
    peer = add_peer(reader, server);
  if (is_another(peer, address, secret)) {
    peer_tell_closed(reader, peer);
    peer_close(reader, peer, NULL);
    g_free(peer->address);
    peer->address = g_strdup(address);
    peer->secret = *secret;
    find_way(reader, peer);
  }
  peer->usable = TRUE;
  if (peer->state == PEER_CLOSED)
    peer_open(reader, peer);
  verbs_unlock_and_wake(reader);
}

void verbs_reader_drop(struct reader *reader, uint32_t server)
{
  verbs_lock(reader);
  struct peer *peer = verbs_find_peer(reader, server);
  if (peer) {
    peer_tell_closed(reader, peer);
    peer_close(reader, peer, NULL);
    peer->usable = FALSE;
  }
  verbs_unlock_and_wake(reader);
}

/* --- reads
 * ---------------------------------------------------------------------------------------------------------*/

static gboolean allowed(const struct reader *reader, const struct read *read)
{
  if (read->memory >= reader->memories || read->bytes == 0 || read->bytes > READ_BYTES_MAX)
    return FALSE;
  uint64_t room = reader->memory[read->memory].bytes;
  return read->to <= room && read->bytes <= room - read->to && read->offset <= UINT64_MAX - read->bytes;
}

void verbs_reader_read(struct reader *reader, const struct transport_read *what)
{
  uint32_t memory = what->gpu == NO_INDEX ? 0 : what->gpu < reader->memories ? what->gpu + 1 : NO_INDEX;
  verbs_lock(reader);
  struct peer *peer = verbs_find_peer(reader, what->server);
  struct read *read = read_take(reader);
  *read = (struct read){.offset = what->offset,
                        .to = what->to,
                        .tag = what->tag,
                        .model = what->model,
                        .memory = memory,
                        .bytes = what->bytes,
                        .listed = TRUE};
  if (!peer || !peer->usable || !allowed(reader, read)) {
    read->bad = TRUE;
    read_settle(reader, read);
  } else {
    list_push(&peer->waiting, read);
    if (peer->state == PEER_CLOSED)
      peer_open(reader, peer);
    else if (peer->state == PEER_OPEN)
      peer_give(reader, peer);
    peer_tell_news(reader, peer);
  }
  verbs_unlock_and_wake(reader);
}

uint64_t verbs_reader_bytes(const struct reader *reader)
{
  return __atomic_load_n(&reader->bytes, __ATOMIC_RELAXED);
}

void verbs_reader_state(struct reader *reader, struct transport_state *state)
{
  *state = (struct transport_state){.connections = 0};
  verbs_lock(reader);
  for (guint i = 0; i < reader->in_order->len; i++)
    state->connections += ((const struct peer *)g_ptr_array_index(reader->in_order, i))->lines;
  verbs_unlock(reader);
}

/* --- the reader
 * ----------------------------------------------------------------------------------------------------*/

static void peer_free(void *data)
{
  struct peer *peer = data;
  g_free(peer->address);
  g_free(peer);
}

static struct reader *reader_init(const struct reader_config *config)
{
  struct reader *reader = g_new0(struct reader, 1);
  reader->memories = 1 + (config->gpu_memory ? config->gpus : 0);
  reader->memory = g_new0(struct memory, reader->memories);
  reader->memory[0] = config->memory;
  for (uint32_t g = 1; g < reader->memories; g++)
    reader->memory[g] = config->gpu_memory[g - 1];
  reader->self = config->self;
  reader->options = config->options;
  reader->options.rdma_device = g_strdup(config->options.rdma_device);
  reader->ended = config->ended;
  reader->post = config->post;
  reader->context = config->context;
  reader->nics = nics_list();
  /* A shelf takes none twice under one secret, so one that begins anew goes on where another has ended. */
  reader->attempt = (uint64_t)g_get_real_time();
  reader->peers = g_hash_table_new_full(NULL, NULL, NULL, peer_free);
  reader->in_order = g_ptr_array_new();
  reader->bell = bell_new();
  g_mutex_init(&reader->lock);
  list_init(&reader->over);
  list_init(&reader->free_reads);
  return reader;
}

struct reader *verbs_reader_new(const struct reader_config *config, GError **error)
{
  struct reader *reader = reader_init(config);
  struct verbs_end *end[READER_ENDS_MAX];
  if (verbs_options_good(&config->options, config->post != NULL, error) &&
      open_ends(reader, NULL, end, error)) {
    reader->thread = g_thread_new("verbs-reader", verbs_reader_run, reader);
    return reader;
  }
  verbs_reader_free(reader);
  return NULL;
}

static void close_all(struct reader *reader)
{
  if (!reader->thread)
    return;
  verbs_lock(reader);
  reader->stop = TRUE;
  for (guint i = 0; i < reader->in_order->len; i++) {
    struct peer *peer = g_ptr_array_index(reader->in_order, i);
    peer_tell_closed(reader, peer);
    peer_close(reader, peer, NULL);
  }
  verbs_unlock(reader);
  verbs_wake(reader);
  g_thread_join(reader->thread);
  verbs_reader_drain(reader);
}

static void free_pools(struct reader *reader)
{
  struct read *read;
  while ((read = list_pop(&reader->free_reads)))
    g_free(read);
  while (reader->free_parts) {
    struct part *part = reader->free_parts;
    reader->free_parts = part->next;
    g_free(part);
  }
}

void verbs_reader_free(struct reader *reader)
{
  if (!reader)
    return;
  close_all(reader);
  for (uint32_t i = 0; i < reader->ends; i++)
    reader->ops->close(reader->end[i].end);
  free_pools(reader);
  if (reader->bell >= 0)
    close(reader->bell);
  g_hash_table_destroy(reader->peers);
  g_ptr_array_unref(reader->in_order);
  g_ptr_array_unref(reader->nics);
  g_mutex_clear(&reader->lock);
  g_free((char *)reader->options.rdma_device);
  g_free(reader->memory);
  g_free(reader);
}
