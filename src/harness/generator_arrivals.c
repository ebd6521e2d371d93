/* Arrival processes; see generator_arrivals.h. Draws come from the stream "arrivals" of the spec's seed. */
#include "harness/generator_arrivals.h"

#include <math.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_randist.h>

#include "core/units.h"
#include "harness/random.h"
#include "harness/spread.h"

struct generator_arrivals {
  const struct generator_spec *spec;
  gsl_rng *rng;
  int64_t now_ns;
  unsigned interval; /* counts: intervals begun */
  struct spread spread;
};

/* Moves on by a time between arrivals; FALSE past the end. */
static gboolean advance(struct generator_arrivals *arrivals, double gap_s)
{
  int64_t gap_ns = ns_round(gap_s * NS_PER_S);
  if (gap_ns >= arrivals->spec->duration_ns - arrivals->now_ns)
    return FALSE;
  arrivals->now_ns += gap_ns;
  return TRUE;
}

static gboolean next_poisson(struct generator_arrivals *arrivals)
{
  return advance(arrivals, gsl_ran_exponential(arrivals->rng, 1 / arrivals->spec->rate_rps));
}

/* A gamma variate of shape k has cv = 1 / sqrt(k). */
static gboolean next_gamma(struct generator_arrivals *arrivals)
{
  double shape = 1 / (arrivals->spec->cv * arrivals->spec->cv);
  return advance(arrivals, gsl_ran_gamma(arrivals->rng, shape, 1 / (arrivals->spec->rate_rps * shape)));
}

/* Thinning of a Poisson process at the peak rate (Lewis and Shedler, Naval Research Logistics 26, 1979). */
static gboolean next_diurnal(struct generator_arrivals *arrivals)
{
  const struct generator_spec *spec = arrivals->spec;
  double peak = spec->rate_rps * (1 + spec->amplitude);
  while (advance(arrivals, gsl_ran_exponential(arrivals->rng, 1 / peak))) {
    double phase = ((double)arrivals->now_ns / NS_PER_S - spec->peak_s) / spec->period_s;
    double rate = spec->rate_rps * (1 + spec->amplitude * cos(2 * M_PI * phase));
    if (gsl_rng_uniform(arrivals->rng) * peak < rate)
      return TRUE;
  }
  return FALSE;
}

static gboolean next_count(struct generator_arrivals *arrivals)
{
  const struct generator_spec *spec = arrivals->spec;
  while (arrivals->spread.left == 0) {
    if (arrivals->interval == spec->counts->len)
      return FALSE;
    arrivals->spread = spread_start(g_array_index(spec->counts, uint64_t, arrivals->interval));
    arrivals->interval++;
  }
  arrivals->now_ns = (arrivals->interval - 1) * spec->interval_ns +
                     spread_next(&arrivals->spread, arrivals->rng, spec->interval_ns);
  return TRUE;
}

struct generator_arrivals *generator_arrivals_new(const struct generator_spec *spec)
{
  struct generator_arrivals *arrivals = g_new0(struct generator_arrivals, 1);
  arrivals->spec = spec;
  arrivals->rng = random_stream(spec->seed, "arrivals");
  return arrivals;
}

void generator_arrivals_free(struct generator_arrivals *arrivals)
{
  if (!arrivals)
    return;
  gsl_rng_free(arrivals->rng);
  g_free(arrivals);
}

gboolean generator_arrivals_next(struct generator_arrivals *arrivals, int64_t *arrival_ns)
{
  static gboolean (*const next[])(struct generator_arrivals *) = {
      [ARRIVAL_POISSON] = next_poisson,
      [ARRIVAL_GAMMA] = next_gamma,
      [ARRIVAL_DIURNAL] = next_diurnal,
      [ARRIVAL_COUNTS] = next_count,
  };
  if (!next[arrivals->spec->kind](arrivals))
    return FALSE;
  *arrival_ns = arrivals->now_ns;
  return TRUE;
}
