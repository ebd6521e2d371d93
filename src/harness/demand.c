/* Shifting demand; see demand.h. */
#include "harness/demand.h"

#include "harness/random.h"

struct demand {
  const struct setup *setup;
  gsl_rng *rng;
  struct zipf *zipf;
  uint32_t slots, turn;
  uint32_t *model;    /* [slots] */
  int64_t next_shift; /* TIME_NEVER = none */
};

static uint32_t draw(struct demand *d)
{
  return d->setup->popular[zipf_draw(d->zipf, d->rng)];
}

struct demand *demand_new(const struct setup *setup, uint32_t slots)
{
  struct demand *d = g_new0(struct demand, 1);
  d->setup = setup;
  d->slots = slots;
  d->rng = random_stream(setup->experiment->seed, "demand");
  d->zipf = zipf_new(catalog_models(setup->catalog), setup->experiment->zipf);
  d->model = g_new(uint32_t, slots);
  d->next_shift = setup->experiment->shift_period_ns > 0 ? setup->experiment->shift_period_ns : TIME_NEVER;
  for (uint32_t s = 0; s < slots; s++)
    d->model[s] = draw(d);
  return d;
}

void demand_free(struct demand *d)
{
  if (!d)
    return;
  gsl_rng_free(d->rng);
  zipf_free(d->zipf);
  g_free(d->model);
  g_free(d);
}

uint32_t demand_model(struct demand *d, uint32_t slot, int64_t at_ns)
{
  while (d->next_shift <= at_ns) {
    d->model[d->turn] = draw(d);
    d->turn = (d->turn + 1) % d->slots;
    d->next_shift += d->setup->experiment->shift_period_ns;
  }
  return d->model[slot];
}

uint32_t demand_active(const struct demand *d, int64_t at_ns, int64_t *until_ns)
{
  const struct experiment *e = d->setup->experiment;
  int64_t round = 0;
  *until_ns = TIME_NEVER;
  for (uint32_t i = 0; i < e->active_phases; i++)
    round += e->active[i].duration_ns;
  if (round <= 0)
    return d->slots;
  int64_t at = at_ns % round, end = at_ns - at;
  for (uint32_t i = 0; i < e->active_phases; i++) {
    end += e->active[i].duration_ns;
    if (at_ns < end) {
      *until_ns = end;
      return MIN(e->active[i].slots, d->slots);
    }
  }
  return d->slots;
}
