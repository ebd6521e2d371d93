/* Decayed counts of uses; see popularity.h. */
#include "core/popularity.h"

struct decayed {
  double count;
  uint64_t step; /* of the grid, at which count held */
};

struct popularity {
  gboolean started;
  int64_t origin_ns; /* step 0 of the grid */
  struct decayed model[];
};

struct popularity *popularity_new(uint32_t models)
{
  return g_malloc0(sizeof(struct popularity) + models * sizeof(struct decayed));
}

void popularity_free(struct popularity *popularity)
{
  g_free(popularity);
}

static uint64_t grid_step(const struct popularity *popularity, int64_t now_ns)
{
  if (!popularity->started || now_ns <= popularity->origin_ns)
    return 0;
  return ((uint64_t)now_ns - (uint64_t)popularity->origin_ns) / (POPULARITY_HALF_LIFE_NS / POPULARITY_STEPS);
}

static double decayed_to(const struct decayed *decayed, uint64_t step)
{
  /* 2^(-i/8): the part of a half-life. */
  static const double part[POPULARITY_STEPS] = {1,
                                                0.91700404320467122,
                                                0.84089641525371450,
                                                0.77110541270397037,
                                                0.70710678118654757,
                                                0.64841977732550475,
                                                0.59460355750136051,
                                                0.54525386633262884};
  if (step <= decayed->step)
    return decayed->count;
  uint64_t steps = step - decayed->step;
  uint64_t halves = steps / POPULARITY_STEPS;
  if (halves >= 64)
    return 0;
  return decayed->count * part[steps % POPULARITY_STEPS] / (double)(1ULL << halves);
}

void popularity_use(struct popularity *popularity, uint32_t model, int64_t now_ns)
{
  if (!popularity->started) {
    popularity->started = TRUE;
    popularity->origin_ns = now_ns;
  }
  struct decayed *decayed = &popularity->model[model];
  uint64_t step = grid_step(popularity, now_ns);
  decayed->count = decayed_to(decayed, step) + 1;
  decayed->step = MAX(step, decayed->step);
}

double popularity_count(const struct popularity *popularity, uint32_t model, int64_t now_ns)
{
  return decayed_to(&popularity->model[model], grid_step(popularity, now_ns));
}
