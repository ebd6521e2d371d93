/* Requests in flight; see flights.h. */
#include "harness/flights.h"

struct flights {
  struct flight *ring;
  uint64_t room; /* a power of two */
  uint64_t oldest, begun, ended;
};

static struct flight *at(const struct flights *flights, uint64_t id)
{
  return &flights->ring[id & (flights->room - 1)];
}

static void grow(struct flights *flights)
{
  uint64_t room = flights->room * 2;
  struct flight *ring = g_new0(struct flight, room);
  for (uint64_t id = flights->oldest; id < flights->begun; id++)
    ring[id & (room - 1)] = *at(flights, id);
  g_free(flights->ring);
  flights->ring = ring;
  flights->room = room;
}

struct flights *flights_new(void)
{
  struct flights *flights = g_new0(struct flights, 1);
  flights->room = 1024;
  flights->ring = g_new0(struct flight, flights->room);
  return flights;
}

void flights_free(struct flights *flights)
{
  if (!flights)
    return;
  g_free(flights->ring);
  g_free(flights);
}

uint64_t flights_begin(struct flights *flights, struct flight flight)
{
  if (flights->begun - flights->oldest == flights->room)
    grow(flights);
  flight.open = TRUE;
  *at(flights, flights->begun) = flight;
  return flights->begun++;
}

const struct flight *flights_find(const struct flights *flights, uint64_t id)
{
  if (id < flights->oldest || id >= flights->begun || !at(flights, id)->open)
    return NULL;
  return at(flights, id);
}

void flights_end(struct flights *flights, uint64_t id)
{
  at(flights, id)->open = FALSE;
  flights->ended++;
  while (flights->oldest < flights->begun && !at(flights, flights->oldest)->open)
    flights->oldest++;
}

uint64_t flights_begun(const struct flights *flights)
{
  return flights->begun;
}

uint64_t flights_ended(const struct flights *flights)
{
  return flights->ended;
}

uint64_t flights_oldest(const struct flights *flights)
{
  return flights->oldest;
}
