/* The shelf of the TCP transport: who may come in, what is served; see transport_tcp_shelf.h. */
#include "backend_real/transport_tcp_shelf.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/transport_tcp.h"
#include "backend_real/transport_tcp_socket.h"
#include "core/error.h"

#define TICKET_WAIT_NS  5000000000 /* a connection without a good ticket is closed after that */
#define STRANGERS_MAX   64         /* of those; the oldest goes */
#define CONNECTIONS_MAX 64         /* of one reader */
#define ACCEPT_AGAIN_NS 100000000  /* when there was no descriptor for a new connection */

static void log_close(struct connection *c, const char *why)
{
  char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
  getnameinfo((const struct sockaddr *)&c->from, sizeof c->from, host, sizeof host, port, sizeof port,
              NI_NUMERICHOST | NI_NUMERICSERV);
  if (c->visitor)
    transport_log(&c->shelf->log, "closed the data connection of reader %u.%u (%s port %s): it %s",
                  (guint)ACTOR_KIND(c->reader), ACTOR_INDEX(c->reader), host, port, why);
  else
    transport_log(&c->shelf->log, "closed a data connection from %s port %s: it %s", host, port, why);
}

void shelf_close(struct connection *c, const char *why)
{
  struct shelf *shelf = c->shelf;
  if (why)
    log_close(c, why);
  g_mutex_lock(&shelf->door);
  *(c->before ? &c->before->next : &shelf->first) = c->next;
  *(c->next ? &c->next->before : &shelf->last) = c->before;
  if (c->visitor) {
    c->visitor->connections--;
  } else {
    shelf->strangers--;
    shelf->refused += why != NULL;
  }
  g_mutex_unlock(&shelf->door);
  poller_remove(c->poller, &c->pollee);
  g_free(c);
}

/* Under the door. */
static void doom(struct connection *c)
{
  g_atomic_int_set(&c->doomed, TRUE);
  poller_wake(c->poller, &c->pollee);
}

/* Under the door. */
static const char *check_ticket(struct shelf *shelf, struct connection *c, const struct ticket *ticket)
{
  struct visitor *visitor = g_hash_table_lookup(shelf->visitors, GUINT_TO_POINTER(ticket->reader));
  if (!visitor || !visitor->admitted || g_atomic_int_get(&c->doomed))
    return "shows the ticket of a reader that is not admitted";
  if (c->visitor && c->visitor != visitor)
    return "shows a ticket of another reader";
  if (!ticket_accept(ticket, &visitor->secret, shelf->index, &visitor->window))
    return "shows a ticket that is not good, or was used";
  if (c->visitor)
    return NULL;
  if (visitor->connections >= CONNECTIONS_MAX)
    return "is one too many of its reader";
  visitor->connections++;
  shelf->strangers--;
  c->visitor = visitor;
  c->reader = ticket->reader;
  return NULL;
}

const char *shelf_check_ticket(struct shelf *shelf, struct connection *c, const struct ticket *ticket)
{
  g_mutex_lock(&shelf->door);
  const char *why = check_ticket(shelf, c, ticket);
  shelf->refused += why && c->visitor; /* a stranger counts when it is closed */
  g_mutex_unlock(&shelf->door);
  if (!why)
    wire_rights_add(&c->rights, ticket->model);
  return why;
}

/* --- the door: new connections, and those that show no ticket */

/* Under the door: closes the strangers whose time is over, and the oldest of too many. Returns when the next
 * one's time is over; 0 = there is none. */
static gint64 expire_strangers(struct shelf *shelf, gint64 now)
{
  uint32_t kept = shelf->strangers;
  gint64 next = 0;
  for (struct connection *c = shelf->first; c; c = c->next) {
    if (c->visitor || g_atomic_int_get(&c->doomed))
      continue;
    if (c->deadline_ns <= now || kept > STRANGERS_MAX) {
      log_close(c, c->deadline_ns <= now ? "showed no ticket in time" : "is one too many without a ticket");
      doom(c);
      shelf->refused++;
      kept--;
    } else if (!next) {
      next = c->deadline_ns;
    }
  }
  return next;
}

static void take_in(struct shelf *shelf, int fd, const struct sockaddr_storage *from, gint64 now)
{
  struct connection *c = g_new0(struct connection, 1);
  c->pollee = POLLEE;
  c->shelf = shelf;
  c->from = *from;
  c->deadline_ns = now + TICKET_WAIT_NS;
  c->poller = shelf->poller[shelf->next_poller++ % shelf->pollers];
  socket_tune(fd);
  g_mutex_lock(&shelf->door);
  c->before = shelf->last;
  *(shelf->last ? &shelf->last->next : &shelf->first) = c;
  shelf->last = c;
  shelf->strangers++;
  gboolean watched = poller_add(c->poller, &c->pollee, fd);
  g_mutex_unlock(&shelf->door);
  if (!watched)
    shelf_close(c, "cannot be watched");
}

/* Accepts all who wait. FALSE: could not, and it is worth trying later. */
static gboolean accept_all(struct shelf *shelf, gint64 now)
{
  for (;;) {
    struct sockaddr_storage from = {0};
    socklen_t length = sizeof from;
    int fd = accept4(shelf->listener.fd, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      take_in(shelf, fd, &from, now);
      continue;
    }
    if (errno == EAGAIN)
      return TRUE;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      transport_log(&shelf->log, "cannot take in a data connection: %s", g_strerror(errno));
      return FALSE;
    }
    /* What else accept reports befell the one connection that waited (accept(2)). */
  }
}

static enum turn listener_turn(struct shelf *shelf, gint64 *again_ns)
{
  gint64 now = poller_clock();
  gboolean all = accept_all(shelf, now);
  g_mutex_lock(&shelf->door);
  gint64 next = expire_strangers(shelf, now);
  g_mutex_unlock(&shelf->door);
  if (!all)
    next = next ? MIN(next, now + ACCEPT_AGAIN_NS) : now + ACCEPT_AGAIN_NS;
  *again_ns = next;
  return next ? TURN_LATER : TURN_BLOCKED;
}

static enum turn shelf_turn(void *context, struct pollee *pollee, gint64 *again_ns)
{
  struct shelf *shelf = context;
  if (pollee == &shelf->listener)
    return listener_turn(shelf, again_ns);
  return connection_turn((struct connection *)pollee, again_ns);
}

/* --- the shelf */

static void init_serving_lock(struct shelf *shelf)
{
  /* glibc's default lets readers that come in turn keep a writer out for ever. */
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(&shelf->serving, &attributes);
  pthread_rwlockattr_destroy(&attributes);
}

static struct shelf *shelf_init(const struct shelf_config *config)
{
  struct shelf *shelf = g_new0(struct shelf, 1);
  shelf->memory = config->memory;
  shelf->index = config->index;
  shelf->listener = POLLEE;
  shelf->served = served_new();
  shelf->visitors = g_hash_table_new_full(NULL, NULL, NULL, g_free);
  g_mutex_init(&shelf->door);
  init_serving_lock(shelf);
  double rate = config->options.pace_bytes_s;
  if (rate > 0) {
    shelf->in = pace_new(rate);
    shelf->out = pace_new(rate);
  }
  shelf->pollers = tcp_threads(&config->options);
  shelf->poller = g_new0(struct poller *, shelf->pollers);
  return shelf;
}

struct shelf *tcp_shelf_new(const struct shelf_config *config, GError **error)
{
  struct shelf *shelf = shelf_init(config);
  int fd = -1;
  for (uint32_t i = 0; i < shelf->pollers; i++)
    if (!(shelf->poller[i] = poller_new("tcp-shelf", shelf_turn, shelf, error)))
      goto fail;
  fd = socket_listen(config->address, error);
  if (fd < 0)
    goto fail;
  shelf->address = socket_address(fd);
  if (!poller_add(shelf->poller[0], &shelf->listener, fd)) {
    g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "cannot watch a socket: %s", g_strerror(errno));
    goto fail;
  }
  for (uint32_t i = 0; i < shelf->pollers; i++)
    poller_start(shelf->poller[i]);
  return shelf;
fail:
  if (fd >= 0 && shelf->listener.fd < 0)
    close(fd);
  tcp_shelf_free(shelf);
  return NULL;
}

void tcp_shelf_free(struct shelf *shelf)
{
  if (!shelf)
    return;
  for (uint32_t i = 0; i < shelf->pollers; i++)
    if (shelf->poller[i])
      poller_stop(shelf->poller[i]);
  while (shelf->first)
    shelf_close(shelf->first, NULL);
  if (shelf->listener.fd >= 0)
    poller_remove(shelf->poller[0], &shelf->listener);
  for (uint32_t i = 0; i < shelf->pollers; i++)
    poller_free(shelf->poller[i]);
  g_free(shelf->poller);
  pace_free(shelf->in);
  pace_free(shelf->out);
  served_free(shelf->served);
  g_hash_table_destroy(shelf->visitors);
  pthread_rwlock_destroy(&shelf->serving);
  g_mutex_clear(&shelf->door);
  g_free(shelf->address);
  g_free(shelf);
}

const char *tcp_shelf_address(const struct shelf *shelf)
{
  return shelf->address;
}

void tcp_shelf_serve(struct shelf *shelf, uint32_t model, uint64_t offset, uint64_t bytes,
                     const struct ranges *place)
{
  pthread_rwlock_wrlock(&shelf->serving);
  if (place)
    served_add(shelf->served, model, offset, bytes, place);
  else
    served_remove(shelf->served, model, offset, bytes);
  pthread_rwlock_unlock(&shelf->serving);
}

/* Under the door. */
static void doom_visitor(struct shelf *shelf, const struct visitor *visitor)
{
  for (struct connection *c = shelf->first; c; c = c->next)
    if (c->visitor == visitor)
      doom(c);
}

void tcp_shelf_admit(struct shelf *shelf, actor_id reader, const struct ticket_secret *secret)
{
  g_mutex_lock(&shelf->door);
  struct visitor *visitor = g_hash_table_lookup(shelf->visitors, GUINT_TO_POINTER(reader));
  if (!visitor) {
    visitor = g_new0(struct visitor, 1);
    g_hash_table_insert(shelf->visitors, GUINT_TO_POINTER(reader), visitor);
  }
  /* With a new secret serials begin anew; with the old one, those seen stay seen. */
  if (memcmp(&visitor->secret, secret, sizeof *secret) != 0) {
    doom_visitor(shelf, visitor);
    visitor->secret = *secret;
    visitor->window = (struct ticket_window){0};
  }
  visitor->admitted = TRUE;
  g_mutex_unlock(&shelf->door);
}

void tcp_shelf_expel(struct shelf *shelf, actor_id reader)
{
  g_mutex_lock(&shelf->door);
  struct visitor *visitor = g_hash_table_lookup(shelf->visitors, GUINT_TO_POINTER(reader));
  if (visitor) {
    visitor->admitted = FALSE;
    doom_visitor(shelf, visitor);
  }
  g_mutex_unlock(&shelf->door);
}

uint64_t tcp_shelf_bytes(const struct shelf *shelf)
{
  return __atomic_load_n(&shelf->bytes, __ATOMIC_RELAXED);
}

void tcp_shelf_state(struct shelf *shelf, struct transport_state *state)
{
  g_mutex_lock(&shelf->door);
  *state = (struct transport_state){.refused = shelf->refused};
  for (const struct connection *c = shelf->first; c; c = c->next)
    state->connections += c->visitor != NULL;
  g_mutex_unlock(&shelf->door);
}
