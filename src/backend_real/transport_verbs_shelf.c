/* The shelf of the verbs transport: who may read; see transport_verbs_shelf.h.
 *
 * No thread of the shelf's takes part in reads. Letters are handled on the loop's thread; one thread of the
 * shelf's own sleeps until a NIC reports something about a line, or a registration has had its time. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/transport_verbs_shelf.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend_real/bell.h"
#include "backend_real/transport_tcp_socket.h"
#include "core/error.h"

/* --- lines
 * ---------------------------------------------------------------------------------------------------------*/

static void close_lines(struct shelf *shelf, struct visitor *visitor)
{
  for (uint32_t i = 0; i < visitor->lines; i++)
    shelf->ops->line_free(visitor->line[i]);
  visitor->lines = 0;
  visitor->attempt = 0;
  shelf->bytes_before += visitor->bytes;
  visitor->bytes = 0;
}

static struct visitor *find_visitor(const struct shelf *shelf, actor_id reader)
{
  return g_hash_table_lookup(shelf->visitors, GUINT_TO_POINTER(reader));
}

static void post(struct shelf *shelf, actor_id reader, const struct verbs_letter *letter)
{
  g_autoptr(GByteArray) packed = verbs_letter_pack(letter);
  shelf->post(shelf->context, reader, packed->data, packed->len);
}

static void refuse(struct shelf *shelf, actor_id reader, uint64_t attempt, const char *why)
{
  struct verbs_letter letter = {.kind = VERBS_REFUSE, .attempt = attempt};
  g_strlcpy(letter.why, why, sizeof letter.why);
  transport_log(&shelf->log, "refused reader %u.%u: %s", (guint)ACTOR_KIND(reader), ACTOR_INDEX(reader), why);
  shelf->refused++;
  post(shelf, reader, &letter);
}

static uint32_t lines_over(const struct shelf *shelf, const struct verbs_end *rail)
{
  uint32_t lines = 0;
  for (guint v = 0; v < shelf->in_order->len; v++) {
    const struct visitor *visitor = g_ptr_array_index(shelf->in_order, v);
    for (uint32_t i = 0; i < visitor->lines; i++)
      lines += visitor->line[i]->end == rail;
  }
  return lines;
}

/* What is malformed comes from nowhere, and is refused by connect. */
static void choose_rails(const struct shelf *shelf, const struct verbs_offers *theirs,
                         uint8_t rail[VERBS_LINES_MAX])
{
  struct rail rails[VERBS_RAILS_MAX];
  uint8_t from[VERBS_LINES_MAX][16] = {{0}};
  for (uint32_t r = 0; r < shelf->rails; r++) {
    rails[r] = shelf->place[r];
    rails[r].lines = lines_over(shelf, shelf->rail[r]);
  }
  for (uint32_t i = 0; i < theirs->lines; i++)
    shelf->ops->origin(theirs->bytes[i], theirs->size[i], from[i]);
  rails_pair(rails, shelf->rails, (const uint8_t(*)[16])from, theirs->lines, rail);
}

static gboolean open_lines(struct shelf *shelf, struct visitor *visitor, const struct verbs_offers *theirs,
                           struct verbs_letter *answer, GError **error)
{
  struct verbs_offers *ours = &answer->offers;
  ours->lines = theirs->lines;
  choose_rails(shelf, theirs, answer->rail);
  for (uint32_t i = 0; i < theirs->lines; i++) {
    struct verbs_line *line = shelf->ops->line_new(shelf->rail[answer->rail[i]], visitor, error);
    if (!line)
      return FALSE;
    visitor->line[visitor->lines++] = line;
    if (!shelf->ops->connect(line, theirs->bytes[i], theirs->size[i], error))
      return FALSE;
    ours->size[i] = (uint8_t)shelf->ops->offer(line, ours->bytes[i]);
  }
  return TRUE;
}

/* --- letters
 * -------------------------------------------------------------------------------------------------------*/

static void accept_reader(struct shelf *shelf, struct visitor *visitor, const struct verbs_letter *letter)
{
  g_autoptr(GError) error = NULL;
  struct verbs_letter answer = {.kind = VERBS_ACCEPT, .attempt = letter->attempt, .rails = shelf->rails};
  close_lines(shelf, visitor);
  if (!open_lines(shelf, visitor, &letter->offers, &answer, &error)) {
    close_lines(shelf, visitor);
    refuse(shelf, visitor->reader, letter->attempt, error->message);
    return;
  }
  visitor->attempt = letter->attempt;
  post(shelf, visitor->reader, &answer);
  shelf_tell_all(shelf, visitor);
}

static void on_open(struct shelf *shelf, actor_id reader, const struct verbs_letter *letter)
{
  struct visitor *visitor = find_visitor(shelf, reader);
  struct ticket ticket;
  ticket_parse(letter->ticket, &ticket);
  if (!visitor || !visitor->admitted)
    refuse(shelf, reader, letter->attempt, "it is not admitted");
  else if (letter->attempt <= visitor->attempt)
    transport_log(&shelf->log, "a late or repeated letter of reader %u.%u is passed over",
                  (guint)ACTOR_KIND(reader), ACTOR_INDEX(reader));
  else if (ticket.reader != reader || ticket.model != NO_INDEX || ticket.serial != letter->attempt ||
           !ticket_accept(&ticket, &visitor->secret, shelf->index, &visitor->window))
    refuse(shelf, reader, letter->attempt, "its ticket is not good, or was used");
  else
    accept_reader(shelf, visitor, letter);
}

/* Of the attempt that has the lines; of any other it is late. */
static void on_news(struct shelf *shelf, actor_id reader, const struct verbs_letter *letter)
{
  struct visitor *visitor = find_visitor(shelf, reader);
  if (!visitor || visitor->attempt != letter->attempt)
    return;
  visitor->bytes = MAX(visitor->bytes, letter->bytes);
  if (letter->kind == VERBS_CLOSE)
    close_lines(shelf, visitor);
  else
    visitor->follows = MAX(visitor->follows, MIN(letter->serial, shelf->serial));
  shelf_retire(shelf, g_get_monotonic_time() * 1000);
}

void verbs_shelf_letter(struct shelf *shelf, actor_id reader, const uint8_t *data, size_t size)
{
  struct verbs_letter letter;
  g_mutex_lock(&shelf->lock);
  if (!verbs_letter_parse(data, size, &letter))
    transport_log(&shelf->log, "reader %u.%u sent a malformed letter", (guint)ACTOR_KIND(reader),
                  ACTOR_INDEX(reader));
  else if (letter.kind == VERBS_OPEN)
    on_open(shelf, reader, &letter);
  else if (letter.kind == VERBS_NEWS || letter.kind == VERBS_CLOSE)
    on_news(shelf, reader, &letter);
  else
    transport_log(&shelf->log, "reader %u.%u sent a letter that only shelves send", (guint)ACTOR_KIND(reader),
                  ACTOR_INDEX(reader));
  g_mutex_unlock(&shelf->lock);
}

void verbs_shelf_admit(struct shelf *shelf, actor_id reader, const struct ticket_secret *secret)
{
  g_mutex_lock(&shelf->lock);
  struct visitor *visitor = find_visitor(shelf, reader);
  if (!visitor) {
    visitor = g_new0(struct visitor, 1);
    visitor->reader = reader;
    g_hash_table_insert(shelf->visitors, GUINT_TO_POINTER(reader), visitor);
    g_ptr_array_add(shelf->in_order, visitor);
  }
  /* With a new secret attempts begin anew; with the old one, those seen stay seen. */
  if (memcmp(&visitor->secret, secret, sizeof *secret) != 0) {
    close_lines(shelf, visitor);
    visitor->secret = *secret;
    visitor->window = (struct ticket_window){0};
  }
  visitor->admitted = TRUE;
  g_mutex_unlock(&shelf->lock);
}

void verbs_shelf_expel(struct shelf *shelf, actor_id reader)
{
  g_mutex_lock(&shelf->lock);
  struct visitor *visitor = find_visitor(shelf, reader);
  if (visitor) {
    visitor->admitted = FALSE;
    close_lines(shelf, visitor);
  }
  g_mutex_unlock(&shelf->lock);
}

/* --- the thread that listens to the NICs
 * ---------------------------------------------------------------------------*/

/* One that broke serves nothing any more, and is told about once: its reader finds out by itself. */
static void look_at_lines(struct shelf *shelf)
{
  for (guint v = 0; v < shelf->in_order->len; v++) {
    struct visitor *visitor = g_ptr_array_index(shelf->in_order, v);
    for (uint32_t i = 0; i < visitor->lines;) {
      const char *why = shelf->ops->broken(visitor->line[i]);
      if (!why) {
        i++;
        continue;
      }
      transport_log(&shelf->log, "closed a line of reader %u.%u: %s", (guint)ACTOR_KIND(visitor->reader),
                    ACTOR_INDEX(visitor->reader), why);
      shelf->refused++;
      shelf->ops->line_free(visitor->line[i]);
      visitor->line[i] = visitor->line[--visitor->lines];
    }
  }
}

static uint32_t collect_fds(const struct shelf *shelf, struct pollfd *fds)
{
  uint32_t count = 0;
  fds[count++] = (struct pollfd){.fd = shelf->bell, .events = POLLIN};
  for (uint32_t r = 0; r < shelf->rails; r++)
    count += verbs_watch(shelf->rail[r], &fds[count]);
  return count;
}

static gboolean any_news(const struct pollfd *fds, uint32_t count)
{
  for (uint32_t i = 1; i < count; i++)
    if (fds[i].revents)
      return TRUE;
  return FALSE;
}

static gpointer shelf_listen(gpointer data)
{
  struct shelf *shelf = data;
  struct pollfd fds[1 + VERBS_RAILS_MAX * VERBS_FDS];
  uint32_t count = collect_fds(shelf, fds);
  g_mutex_lock(&shelf->lock);
  while (!shelf->stop) {
    gint64 now = g_get_monotonic_time() * 1000, next = shelf_retire(shelf, now);
    int wait_ms = next ? (int)((next - now) / 1000000 + 1) : -1;
    g_mutex_unlock(&shelf->lock);
    if (poll(fds, count, wait_ms) < 0 && errno != EINTR)
      g_error("poll: %m");
    g_mutex_lock(&shelf->lock);
    bell_silence(shelf->bell);
    if (!any_news(fds, count))
      continue;
    for (uint32_t r = 0; r < shelf->rails; r++)
      shelf->ops->woken(shelf->rail[r]);
    look_at_lines(shelf);
  }
  g_mutex_unlock(&shelf->lock);
  return NULL;
}

/* --- the shelf
 * -----------------------------------------------------------------------------------------------------*/

/* "HOST:PORT" or "[HOST]:PORT", well formed and numeric, without its port; NULL: every address of this
 * machine. */
static char *host_of(const char *address)
{
  g_autofree char *host = g_strndup(address, strrchr(address, ':') - address);
  size_t length = strlen(host);
  if (*host == '[')
    host[length - 1] = 0;
  const char *bare = *host == '[' ? host + 1 : host;
  return strcmp(bare, "0.0.0.0") == 0 || strcmp(bare, "::") == 0 ? NULL : g_strdup(bare);
}

static gboolean open_rails(struct shelf *shelf, const struct shelf_config *config, GError **error)
{
  g_autoptr(GPtrArray) nics = nics_list();
  g_autoptr(GArray) addresses = nic_addresses();
  g_autofree char *host = host_of(shelf->address);
  g_autoptr(GArray) choices = verbs_choose(nics, &config->options, host, config->memory.pci, error);
  for (guint i = 0; choices && i < MIN(choices->len, VERBS_RAILS_MAX); i++) {
    const struct nic_choice *choice = &g_array_index(choices, struct nic_choice, i);
    struct verbs_end_config end = {.nic = choice->nic, .gid = choice->gid, .serves = TRUE};
    shelf->ops = verbs_queue_ops(choice->nic->kind);
    shelf->rail[i] = shelf->ops->open(&end, error);
    if (!shelf->rail[i])
      return FALSE;
    memcpy(shelf->place[i].gid, choice->gid.raw, sizeof shelf->place[i].gid);
    shelf->place[i].bits = rail_bits(choice, addresses);
    shelf->rails++;
    g_message("memory server %u serves by %s of RDMA device %s", config->index, shelf->ops->name,
              shelf->rail[i]->name);
  }
  return shelf->rails > 0;
}

struct shelf *verbs_shelf_new(const struct shelf_config *config, GError **error)
{
  struct shelf *shelf = g_new0(struct shelf, 1);
  shelf->memory = config->memory;
  shelf->index = config->index;
  shelf->post = config->post;
  shelf->context = config->context;
  shelf->visitors = g_hash_table_new_full(NULL, NULL, NULL, g_free);
  shelf->in_order = g_ptr_array_new();
  shelf->regions = spans_new();
  shelf->untold = g_array_new(FALSE, FALSE, sizeof(struct verbs_region));
  shelf->bell = bell_new();
  g_mutex_init(&shelf->lock);
  shelf->address_fd = socket_reserve(config->address, error);
  if (shelf->address_fd >= 0)
    shelf->address = socket_address(shelf->address_fd);
  if (shelf->address && verbs_options_good(&config->options, config->post != NULL, error) &&
      open_rails(shelf, config, error)) {
    shelf->thread = g_thread_new("verbs-shelf", shelf_listen, shelf);
    return shelf;
  }
  verbs_shelf_free(shelf);
  return NULL;
}

static void stop(struct shelf *shelf)
{
  if (!shelf->thread)
    return;
  g_mutex_lock(&shelf->lock);
  shelf->stop = TRUE;
  g_mutex_unlock(&shelf->lock);
  bell_ring(shelf->bell);
  g_thread_join(shelf->thread);
}

void verbs_shelf_free(struct shelf *shelf)
{
  if (!shelf)
    return;
  stop(shelf);
  for (guint i = 0; i < shelf->in_order->len; i++)
    close_lines(shelf, g_ptr_array_index(shelf->in_order, i));
  shelf_retire_all(shelf);
  for (uint32_t r = 0; r < shelf->rails; r++)
    shelf->ops->close(shelf->rail[r]);
  if (shelf->address_fd >= 0)
    close(shelf->address_fd);
  if (shelf->bell >= 0)
    close(shelf->bell);
  spans_free(shelf->regions);
  g_array_unref(shelf->untold);
  g_ptr_array_unref(shelf->in_order);
  g_hash_table_destroy(shelf->visitors);
  g_mutex_clear(&shelf->lock);
  g_free(shelf->failure);
  g_free(shelf->address);
  g_free(shelf);
}

const char *verbs_shelf_address(const struct shelf *shelf)
{
  return shelf->address;
}

const char *verbs_shelf_failure(struct shelf *shelf)
{
  g_mutex_lock(&shelf->lock);
  const char *failure = shelf->failure;
  g_mutex_unlock(&shelf->lock);
  return failure;
}

/* What readers say that they read: its own processor sees nothing of it. */
uint64_t verbs_shelf_bytes(const struct shelf *shelf)
{
  GMutex *lock = (GMutex *)&shelf->lock;
  g_mutex_lock(lock);
  uint64_t bytes = shelf->bytes_before;
  for (guint i = 0; i < shelf->in_order->len; i++)
    bytes += ((const struct visitor *)g_ptr_array_index(shelf->in_order, i))->bytes;
  g_mutex_unlock(lock);
  return bytes;
}

void verbs_shelf_state(struct shelf *shelf, struct transport_state *state)
{
  g_mutex_lock(&shelf->lock);
  *state = (struct transport_state){.refused = shelf->refused};
  for (guint i = 0; i < shelf->in_order->len; i++)
    state->connections += ((const struct visitor *)g_ptr_array_index(shelf->in_order, i))->lines;
  g_mutex_unlock(&shelf->lock);
}
