/* Reads of the verbs reader: cut at the ends of regions, given to lines, ended; see transport_verbs_reader.h.
 */
#include "backend_real/transport_verbs_reader.h"

/* --- lists
 * ---------------------------------------------------------------------------------------------------------*/

void list_init(struct read_list *list)
{
  list->first = NULL;
  list->last = &list->first;
}

void list_push(struct read_list *list, struct read *read)
{
  read->next = NULL;
  *list->last = read;
  list->last = &read->next;
}

struct read *list_pop(struct read_list *list)
{
  struct read *read = list->first;
  if (!read)
    return NULL;
  list->first = read->next;
  if (!list->first)
    list->last = &list->first;
  return read;
}

struct read *read_take(struct reader *reader)
{
  struct read *read = list_pop(&reader->free_reads);
  return read ? read : g_new(struct read, 1);
}

static struct part *part_take(struct reader *reader)
{
  struct part *part = reader->free_parts;
  if (!part)
    return g_new(struct part, 1);
  reader->free_parts = part->next;
  return part;
}

/* --- ends
 * ----------------------------------------------------------------------------------------------------------*/

void read_settle(struct reader *reader, struct read *read)
{
  read->listed = FALSE;
  if (read->parts == 0)
    list_push(&reader->over, read);
}

void part_done(struct reader *reader, const struct verbs_done *done)
{
  struct part *part = (struct part *)(uintptr_t)done->tag;
  struct line *line = done->line->context;
  struct read *read = part->read;
  line->bytes -= part->bytes;
  line->reads--;
  reader->under_way--;
  known_done(part->known);
  read->parts--;
  if (!done->good) {
    read->bad = TRUE;
  } else {
    __atomic_fetch_add(&reader->bytes, part->bytes, __ATOMIC_RELAXED);
    if (line->peer)
      line->peer->bytes += part->bytes;
  }
  if (!read->listed && read->parts == 0)
    list_push(&reader->over, read);
  part->next = reader->free_parts;
  reader->free_parts = part;
}

static void fail(struct reader *reader, struct read *read)
{
  read->bad = TRUE;
  read_settle(reader, read);
}

void peer_fail(struct reader *reader, struct peer *peer)
{
  struct read *read;
  while ((read = list_pop(&peer->waiting)))
    fail(reader, read);
  while ((read = list_pop(&peer->held)))
    fail(reader, read);
}

/* Letters may come as often as they like: a read is held until the deadline that it was given first. */
gint64 peer_expire(struct reader *reader, struct peer *peer, gint64 now)
{
  struct read_list held = peer->held;
  gint64 next = 0;
  if (!held.first)
    return 0;
  list_init(&peer->held);
  for (struct read *read; (read = list_pop(&held));)
    if (read->deadline_ns <= now) {
      fail(reader, read);
    } else {
      next = next ? MIN(next, read->deadline_ns) : read->deadline_ns;
      list_push(&peer->held, read);
    }
  return next;
}

void peer_release(struct peer *peer)
{
  struct read *read;
  while ((read = list_pop(&peer->held)))
    list_push(&peer->waiting, read);
}

/* --- giving
 * --------------------------------------------------------------------------------------------------------*/

static gboolean has_room(struct line *line, uint32_t bytes)
{
  const struct verbs_window *w = &line->window;
  if (line->full && line->reads <= w->reads - (w->reads + 3) / 4 && line->bytes <= w->bytes - w->bytes / 4)
    line->full = FALSE;
  if (line->reads == 0)
    return TRUE;
  if (line->reads >= w->reads || line->bytes + bytes > w->bytes)
    line->full = TRUE;
  return !line->full;
}

/* The one with the least to do, so that parts spread over lines and NICs; of equal ones the next after the
 * last that was chosen, or a light load would keep to the first NIC. */
static struct line *choose_line(struct peer *peer, uint32_t bytes)
{
  struct line *best = NULL;
  uint32_t number = peer->chosen;
  for (uint32_t i = 1; i <= peer->lines; i++) {
    uint32_t at = (peer->chosen + i) % peer->lines;
    struct line *line = peer->line[at];
    if (has_room(line, bytes) && (!best || line->bytes < best->bytes)) {
      best = line;
      number = at;
    }
  }
  peer->chosen = number;
  return best;
}

static void flush(struct reader *reader, struct line *line)
{
  if (line->loaded == 0)
    return;
  reader->ops->post(line->queue, line->burst, line->loaded);
  line->loaded = 0;
  if (reader->ops->broken(line->queue))
    verbs_wake(reader);
}

static void load(struct reader *reader, struct line *line, struct read *read, struct known *known,
                 uint32_t bytes)
{
  struct part *part = part_take(reader);
  uint64_t offset = read->offset + read->given;
  *part = (struct part){.read = read, .known = known, .bytes = bytes};
  known_use(known);
  line->burst[line->loaded++] =
      (struct verbs_read){.address = known->rail[line->rail].address + (offset - known->span.offset),
                          .to = read->to + read->given,
                          .key = known->rail[line->rail].key,
                          .memory = read->memory,
                          .bytes = bytes,
                          .tag = (uint64_t)(uintptr_t)part};
  line->reads++;
  line->bytes += bytes;
  reader->under_way++;
  read->parts++;
  read->given += bytes;
  if (line->loaded == LINE_BURST)
    flush(reader, line);
}

enum given { GIVEN_WHOLE, GIVEN_NO_LINE, GIVEN_UNKNOWN };

/* Nothing of a read lands while it is not known that all of it is there. */
static enum given give(struct reader *reader, struct peer *peer, struct read *read)
{
  if (read->given == 0 && !known_covers(peer->known, read->model, read->offset, read->bytes))
    return GIVEN_UNKNOWN;
  while (read->given < read->bytes) {
    uint64_t offset = read->offset + read->given;
    struct known *known = known_find(peer->known, read->model, offset);
    if (!known)
      return GIVEN_UNKNOWN;
    uint32_t bytes =
        (uint32_t)MIN(read->bytes - read->given, known->span.offset + known->span.bytes - offset);
    struct line *line = choose_line(peer, bytes);
    if (!line)
      return GIVEN_NO_LINE;
    load(reader, line, read, known, bytes);
  }
  return GIVEN_WHOLE;
}

void peer_give(struct reader *reader, struct peer *peer)
{
  gboolean room = TRUE;
  while (room && peer->waiting.first) {
    struct read *read = peer->waiting.first;
    enum given given = give(reader, peer, read);
    room = given != GIVEN_NO_LINE;
    if (!room)
      break;
    list_pop(&peer->waiting);
    if (given == GIVEN_WHOLE) {
      read_settle(reader, read);
    } else {
      if (!read->deadline_ns)
        read->deadline_ns = g_get_monotonic_time() * 1000 + HOLD_NS;
      list_push(&peer->held, read);
      verbs_wake(reader); /* to sleep no longer than that */
    }
  }
  for (uint32_t i = 0; i < peer->lines; i++)
    flush(reader, peer->line[i]);
}
