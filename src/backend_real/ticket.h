/* Tickets: the right to open a data connection and read one model over it, once.
 *
 * A ticket is HMAC-SHA256 of (reader, shelf, model, serial) under the secret that the controller's process
 * gave to the pair over the control plane. A shelf takes serials of one reader in any order but none twice,
 * and none far behind the newest. */
#ifndef DM_TICKET_H
#define DM_TICKET_H

#include <glib.h>
#include "core/world.h"

struct ticket_secret {
  uint8_t key[32];
};

/* As it goes over the wire: little-endian fields, then the tag. */
struct ticket {
  uint32_t reader, shelf, model;
  uint64_t serial;
  uint8_t tag[32];
};
#define TICKET_BYTES 52

/* What a shelf has seen of one reader: a sliding window over serials. */
struct ticket_window {
  uint64_t newest;
  uint64_t seen[1024]; /* bits of the last 65536: tickets of a connection that stalls stay good meanwhile */
};

gboolean ticket_secret_random(struct ticket_secret *secret, GError **error);
void ticket_issue(const struct ticket_secret *secret, uint32_t reader, uint32_t shelf, uint32_t model,
                  uint64_t serial, uint8_t wire[TICKET_BYTES]);
void ticket_parse(const uint8_t wire[TICKET_BYTES], struct ticket *ticket);
/* Tag right (compared in constant time), for this shelf, serial not seen: then it is seen. */
gboolean ticket_accept(const struct ticket *ticket, const struct ticket_secret *secret, uint32_t shelf,
                       struct ticket_window *window);

#endif
