/* Tickets; see ticket.h. */
#include "backend_real/ticket.h"

#include <string.h>
#include <sys/random.h>

#include "core/error.h"

#define SIGNED_BYTES (TICKET_BYTES - 32)
#define WINDOW_BITS  (sizeof(((struct ticket_window *)0)->seen) * 8)

static void put(uint8_t *to, uint64_t value, unsigned bytes)
{
  for (unsigned i = 0; i < bytes; i++)
    to[i] = value >> 8 * i;
}

static uint64_t get(const uint8_t *from, unsigned bytes)
{
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++)
    value |= (uint64_t)from[i] << 8 * i;
  return value;
}

static void put_fields(const struct ticket *ticket, uint8_t wire[SIGNED_BYTES])
{
  put(wire, ticket->reader, 4);
  put(wire + 4, ticket->shelf, 4);
  put(wire + 8, ticket->model, 4);
  put(wire + 12, ticket->serial, 8);
}

static void sign(const struct ticket_secret *secret, const uint8_t fields[SIGNED_BYTES], uint8_t tag[32])
{
  GHmac *hmac = g_hmac_new(G_CHECKSUM_SHA256, secret->key, sizeof secret->key);
  g_hmac_update(hmac, fields, SIGNED_BYTES);
  gsize length = 32;
  g_hmac_get_digest(hmac, tag, &length);
  g_hmac_unref(hmac);
}

gboolean ticket_secret_random(struct ticket_secret *secret, GError **error)
{
  /* Up to 256 bytes come whole or not at all (getrandom(2)). */
  if (getrandom(secret->key, sizeof secret->key, 0) == sizeof secret->key)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "no random bytes for a ticket secret: %s", g_strerror(errno));
  return FALSE;
}

void ticket_issue(const struct ticket_secret *secret, uint32_t reader, uint32_t shelf, uint32_t model,
                  uint64_t serial, uint8_t wire[TICKET_BYTES])
{
  struct ticket ticket = {.reader = reader, .shelf = shelf, .model = model, .serial = serial};
  put_fields(&ticket, wire);
  sign(secret, wire, wire + SIGNED_BYTES);
}

void ticket_parse(const uint8_t wire[TICKET_BYTES], struct ticket *ticket)
{
  ticket->reader = get(wire, 4);
  ticket->shelf = get(wire + 4, 4);
  ticket->model = get(wire + 8, 4);
  ticket->serial = get(wire + 12, 8);
  memcpy(ticket->tag, wire + SIGNED_BYTES, sizeof ticket->tag);
}

/* Each step without a branch on the bytes: how long it takes tells nothing about how many are right. */
static gboolean equal_tags(const uint8_t a[32], const uint8_t b[32])
{
  volatile uint8_t difference = 0;
  for (unsigned i = 0; i < 32; i++)
    difference |= a[i] ^ b[i];
  return difference == 0;
}

static uint64_t *window_word(struct ticket_window *window, uint64_t serial)
{
  return &window->seen[serial % WINDOW_BITS / 64];
}

/* The bits between the newest serial and this one belonged to serials that are too old now. */
static void window_advance(struct ticket_window *window, uint64_t serial)
{
  if (serial - window->newest >= WINDOW_BITS) {
    memset(window->seen, 0, sizeof window->seen);
  } else {
    for (uint64_t s = window->newest + 1; s <= serial; s++)
      *window_word(window, s) &= ~(1ULL << s % 64);
  }
  window->newest = serial;
}

static gboolean window_mark(struct ticket_window *window, uint64_t serial)
{
  if (serial > window->newest)
    window_advance(window, serial);
  else if (window->newest - serial >= WINDOW_BITS || *window_word(window, serial) >> serial % 64 & 1)
    return FALSE;
  *window_word(window, serial) |= 1ULL << serial % 64;
  return TRUE;
}

gboolean ticket_accept(const struct ticket *ticket, const struct ticket_secret *secret, uint32_t shelf,
                       struct ticket_window *window)
{
  uint8_t fields[SIGNED_BYTES], tag[32];
  put_fields(ticket, fields);
  sign(secret, fields, tag);
  return equal_tags(tag, ticket->tag) && ticket->shelf == shelf && window_mark(window, ticket->serial);
}
