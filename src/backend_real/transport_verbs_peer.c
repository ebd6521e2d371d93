/* A peer of the verbs reader: letters to and from its shelf, opening and closing of lines; see
 * transport_verbs_reader.h. */
#define G_LOG_DOMAIN "transport"

#include "backend_real/transport_verbs_reader.h"

/* --- letters
 * -------------------------------------------------------------------------------------------------------*/

static void post(struct reader *reader, const struct peer *peer, const struct verbs_letter *letter)
{
  g_autoptr(GByteArray) packed = verbs_letter_pack(letter);
  reader->post(reader->context, peer->server, packed->data, packed->len);
}

void peer_tell_closed(struct reader *reader, struct peer *peer)
{
  struct verbs_letter letter = {.kind = VERBS_CLOSE, .attempt = peer->attempt, .bytes = peer->bytes};
  if (peer->shelf_opened)
    post(reader, peer, &letter);
  peer->shelf_opened = FALSE;
}

/* The shelf waits to hear that no read uses what it took away. */
void peer_tell_news(struct reader *reader, struct peer *peer)
{
  gint64 now = g_get_monotonic_time() * 1000;
  if (peer->state != PEER_OPEN)
    return;
  gboolean follows = peer->serial != peer->told_serial && known_leaving(peer->known) == 0;
  if (!follows && (peer->bytes == peer->told_bytes || now < peer->told_ns + NEWS_NS))
    return;
  if (follows)
    peer->told_serial = peer->serial;
  struct verbs_letter letter = {
      .kind = VERBS_NEWS, .attempt = peer->attempt, .serial = peer->told_serial, .bytes = peer->bytes};
  peer->told_bytes = peer->bytes;
  peer->told_ns = now;
  post(reader, peer, &letter);
}

/* --- lines
 * ---------------------------------------------------------------------------------------------------------*/

void peer_close(struct reader *reader, struct peer *peer, const char *why)
{
  if (why)
    transport_log(&reader->log, "lost the way to memory server %u (%s): %s", peer->server, peer->address,
                  why);
  for (uint32_t i = 0; i < peer->lines; i++) {
    struct line *line = peer->line[i];
    line->peer = NULL;
    reader->ops->line_break(line->queue);
    line->next = reader->given_up;
    reader->given_up = line;
  }
  if (peer->lines > 0)
    verbs_wake(reader);
  peer->lines = 0;
  peer->state = PEER_CLOSED;
  known_table_close(peer->known);
  peer->known = NULL;
  peer_fail(reader, peer);
}

static uint32_t lines_to(const struct reader *reader, const struct peer *peer)
{
  uint32_t wanted = reader->options.connections ? reader->options.connections : reader->ops->lines;
  wanted = (wanted + peer->ends - 1) / peer->ends * peer->ends;
  return MIN(wanted, VERBS_LINES_MAX);
}

static gboolean make_lines(struct reader *reader, struct peer *peer, struct verbs_offers *offers,
                           GError **error)
{
  offers->lines = lines_to(reader, peer);
  for (uint32_t i = 0; i < offers->lines; i++) {
    struct line *line = g_new0(struct line, 1);
    line->queue = reader->ops->line_new(peer->end[i % peer->ends], line, error);
    if (!line->queue) {
      g_free(line);
      return FALSE;
    }
    line->peer = peer;
    peer->line[peer->lines++] = line;
    offers->size[i] = (uint8_t)reader->ops->offer(line->queue, offers->bytes[i]);
  }
  return TRUE;
}

void peer_open(struct reader *reader, struct peer *peer)
{
  g_autoptr(GError) error = NULL;
  struct verbs_letter letter = {.kind = VERBS_OPEN, .attempt = ++reader->attempt};
  if (peer->ends == 0) {
    peer_fail(reader, peer);
    return;
  }
  if (!make_lines(reader, peer, &letter.offers, &error)) {
    peer_close(reader, peer, error->message);
    return;
  }
  ticket_issue(&peer->secret, reader->self, peer->server, NO_INDEX, letter.attempt, letter.ticket);
  peer->state = PEER_OPENING;
  peer->shelf_opened = TRUE;
  peer->attempt = letter.attempt;
  peer->deadline_ns = g_get_monotonic_time() * 1000 + OPEN_NS;
  peer->serial = peer->told_serial = peer->bytes = peer->told_bytes = 0;
  peer->told_ns = 0;
  post(reader, peer, &letter);
  verbs_wake(reader);
}

static void on_accept(struct reader *reader, struct peer *peer, const struct verbs_letter *letter)
{
  g_autoptr(GError) error = NULL;
  if (peer->state != PEER_OPENING)
    return;
  if (letter->offers.lines != peer->lines) {
    peer_close(reader, peer, "it accepted another number of lines than it was asked for");
    return;
  }
  for (uint32_t i = 0; i < peer->lines; i++) {
    struct line *line = peer->line[i];
    if (!reader->ops->connect(line->queue, letter->offers.bytes[i], letter->offers.size[i], &error)) {
      peer_close(reader, peer, error->message);
      return;
    }
    reader->ops->window(line->queue, &line->window);
    line->rail = letter->rail[i];
  }
  peer->state = PEER_OPEN;
  peer->known = known_table_new(letter->rails);
  peer_give(reader, peer);
}

static void on_regions(struct reader *reader, struct peer *peer, const struct verbs_letter *letter)
{
  if (peer->state != PEER_OPEN || letter->rails != known_rails(peer->known))
    return;
  for (uint32_t i = 0; i < letter->entries; i++) {
    struct verbs_region region;
    verbs_letter_region(letter, i, &region);
    if (!known_apply(peer->known, &region))
      transport_log(&reader->log, "memory server %u serves more than %u regions", peer->server, KNOWN_MAX);
  }
  peer->serial = MAX(peer->serial, letter->serial);
  peer_release(peer);
  peer_give(reader, peer);
  peer_tell_news(reader, peer);
}

static void take_letter(struct reader *reader, uint32_t server, const struct verbs_letter *letter)
{
  struct peer *peer = verbs_find_peer(reader, server);
  if (!peer || peer->state == PEER_CLOSED || peer->attempt != letter->attempt)
    return; /* it is late */
  if (letter->kind == VERBS_ACCEPT) {
    on_accept(reader, peer, letter);
  } else if (letter->kind == VERBS_REFUSE) {
    peer->shelf_opened = FALSE;
    peer_close(reader, peer, letter->why);
  } else if (letter->kind == VERBS_REGIONS) {
    on_regions(reader, peer, letter);
  } else {
    transport_log(&reader->log, "memory server %u sent a letter that only readers send", server);
  }
}

void verbs_reader_letter(struct reader *reader, uint32_t server, const uint8_t *data, size_t size)
{
  struct verbs_letter letter;
  verbs_lock(reader);
  if (verbs_letter_parse(data, size, &letter))
    take_letter(reader, server, &letter);
  else
    transport_log(&reader->log, "memory server %u sent a malformed letter", server);
  verbs_unlock_and_wake(reader);
}
