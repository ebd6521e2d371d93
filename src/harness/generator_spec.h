/* The spec of a synthetic trace, a key file (`trace synth SPEC.ini`):
 *
 *   [trace]
 *   kind = poisson            # poisson | gamma | diurnal | counts: how arrivals come
 *   seed = 1
 *   duration_s = 600          # all kinds but counts: no arrival at or after it
 *   rate_rps = 20             # all kinds but counts: mean rate
 *   cv = 3                    # gamma: of the times between arrivals (1 = Poisson, more = bursts)
 *   amplitude = 0.8           # diurnal: rate(t) = rate_rps x (1 + amplitude x cos(2 pi (t - peak_s) /
 * period_s)) period_s = 86400          # diurnal peak_s = 50400            # diurnal, default 0 counts =
 * 120;80;300       # counts: exactly so many arrivals in each interval interval_s = 60           # counts,
 * default 60
 *
 *   [models]                  # optional: PROFILE = VARIANTS; the names are PROFILE-0, PROFILE-1, … (PROFILE
 * if 1) resnet152 = 16
 *
 *   [popularity]              # optional: how often each variant is asked for, default zipf = 0 (all alike)
 *   zipf = 0.9                # exponent over all variants, ranked in turn: variant 0 of each profile,
 * variant 1 of each, … ranks = listed            # listed | shuffled: the order of ranks, shuffled by the
 * seed [weights]                 # or: PROFILE = WEIGHT, shared evenly by its variants; every profile needs
 * one resnet152 = 3
 *
 *   [tokens]                  # optional: input, output: a distribution (distribution.h), rounded, at least 1
 *   input = lognormal 512 1.2 32768
 *   [service]                 # optional: time_ms: a distribution
 *   time_ms = lognormal 20 0.5
 */
#ifndef DM_GENERATOR_SPEC_H
#define DM_GENERATOR_SPEC_H

#include "harness/distribution.h"

#include <stdint.h>

#define GENERATOR_VARIANTS_MAX 1000000u /* in all */
#define GENERATOR_ROWS_MAX     1e10     /* expected in all */

enum arrival_kind { ARRIVAL_POISSON, ARRIVAL_GAMMA, ARRIVAL_DIURNAL, ARRIVAL_COUNTS };

struct generator_profile {
  char *name;
  uint32_t variants;
  double weight; /* of [weights] */
};

struct generator_spec {
  enum arrival_kind kind;
  uint64_t seed;
  int64_t duration_ns;
  double rate_rps, cv, amplitude, period_s, peak_s;
  GArray *counts; /* uint64_t */
  int64_t interval_ns;
  GArray *profiles;  /* struct generator_profile */
  uint32_t variants; /* of all profiles */
  double zipf;
  gboolean shuffled, weighted;
  struct distribution input, output, service_ms;
};

/* NULL + DM_ERROR_INPUT (file, line). */
struct generator_spec *generator_spec_load(const char *path, GError **error);
struct generator_spec *generator_spec_parse(const char *path, const char *text, gsize length, GError **error);
void generator_spec_free(struct generator_spec *spec);
typedef struct generator_spec GeneratorSpec; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GeneratorSpec, generator_spec_free)

#endif
