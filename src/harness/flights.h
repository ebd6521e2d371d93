/* Requests in flight: who asked for what, and when. Ids are 0, 1, … in order of sending, so the open ones
 * live in a ring, which grows with the distance from the oldest open one to the newest. */
#ifndef DM_FLIGHTS_H
#define DM_FLIGHTS_H

#include <glib.h>
#include <stdint.h>

struct flight {
  int64_t arrival_ns; /* intended, from the start of the run */
  uint32_t model;
  uint32_t client; /* NO_INDEX: open loop */
  gboolean open;   /* set by flights_begin */
};

struct flights;

struct flights *flights_new(void);
void flights_free(struct flights *flights);
/* Returns the request's id. */
uint64_t flights_begin(struct flights *flights, struct flight flight);
/* The open request of that id; NULL: it has ended, or was never sent. Valid until the next flights_begin. */
const struct flight *flights_find(const struct flights *flights, uint64_t id);
/* id must be open. */
void flights_end(struct flights *flights, uint64_t id);

uint64_t flights_begun(const struct flights *flights);
uint64_t flights_ended(const struct flights *flights);
/* Open ids lie in [flights_oldest, flights_begun). */
uint64_t flights_oldest(const struct flights *flights);

#endif
