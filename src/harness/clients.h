/* Clients of closed loops, each with one request in flight: what a client asks for next.
 *
 * kind = closed: any model, by popularity. kind = shifting: client k belongs to demand slot k mod slots and
 * asks for its slot's model of the moment, or waits while the slot is not active. */
#ifndef DM_CLIENTS_H
#define DM_CLIENTS_H

#include "core/world.h"
#include "harness/setup.h"

struct clients;

struct client_ask {
  uint32_t model;
  uint32_t slot; /* NO_INDEX: no demand slot */
};

struct clients *clients_new(const struct setup *setup);
void clients_free(struct clients *clients);
uint32_t clients_count(const struct clients *clients);
/* What the client asks for at at_ns (from the start of the run; never decreases between calls). FALSE: its
 * slot is not active; ask again when the phase has ended. */
gboolean clients_ask(struct clients *clients, uint32_t client, int64_t at_ns, struct client_ask *ask);
/* Its last clients_ask was refused; every client waits before its first. */
gboolean clients_waiting(const struct clients *clients, uint32_t client);
/* When other slots become active; TIME_NEVER where they never change. */
int64_t clients_phase_end(const struct clients *clients, int64_t at_ns);

#endif
