/* Requests in flight against a plain list of all of them. */
#include <criterion/criterion.h>

#include "harness/flights.h"
#include "harness/random.h"

#define IDS 20000

static gboolean open_now[IDS];

static void check_id(const struct flights *flights, uint64_t id, uint64_t begun)
{
  const struct flight *flight = flights_find(flights, id);
  cr_assert_eq(flight != NULL, id < begun && open_now[id]);
  if (!flight)
    return;
  cr_assert_eq(flight->arrival_ns, (int64_t)id * 3);
  cr_assert_eq(flight->client, (uint32_t)(id % 7));
}

Test(flights, are_found_until_they_end)
{
  gsl_rng *rng = random_stream(1, "flights test");
  struct flights *flights = flights_new();
  uint64_t begun = 0, ended = 0, oldest = 0;
  while (begun < IDS) {
    /* The open ones first grow far past the first ring, then are few. */
    gboolean begin = gsl_rng_uniform(rng) < (begun < IDS / 2 ? 0.9 : 0.4) || ended == begun;
    if (begin) {
      struct flight flight = {.arrival_ns = (int64_t)begun * 3, .client = (uint32_t)(begun % 7)};
      cr_assert_eq(flights_begin(flights, flight), begun);
      open_now[begun++] = TRUE;
    } else {
      uint64_t id = oldest + gsl_rng_uniform_int(rng, begun - oldest);
      check_id(flights, id, begun);
      if (open_now[id]) {
        flights_end(flights, id);
        open_now[id] = FALSE;
        ended++;
      }
    }
    while (oldest < begun && !open_now[oldest])
      oldest++;
    cr_assert_eq(flights_oldest(flights), oldest);
    cr_assert_eq(flights_begun(flights), begun);
    cr_assert_eq(flights_ended(flights), ended);
    check_id(flights, gsl_rng_uniform_int(rng, IDS), begun);
  }
  flights_free(flights);
  gsl_rng_free(rng);
}
