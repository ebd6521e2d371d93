/* Seeding by (seed, purpose), xoshiro256** behind GSL's interface, Zipf draws; see random.h. */
#include "harness/random.h"

#include <math.h>
#include <glib.h>
#include <gsl/gsl_randist.h>

static uint64_t splitmix64(uint64_t *state)
{
  uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

static uint64_t fnv1a64(const char *text)
{
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char *at = text; *at; at++)
    hash = (hash ^ (uint8_t)*at) * 0x100000001b3ULL;
  return hash;
}

static uint64_t rotate_left(uint64_t value, int bits)
{
  return value << bits | value >> (64 - bits);
}

static void xoshiro_set(void *state, unsigned long seed)
{
  uint64_t *s = state, mix = seed;
  for (int i = 0; i < 4; i++)
    s[i] = splitmix64(&mix);
}

static unsigned long xoshiro_get(void *state)
{
  uint64_t *s = state;
  uint64_t result = rotate_left(s[1] * 5, 7) * 9, shifted = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= shifted;
  s[3] = rotate_left(s[3], 45);
  return result;
}

static double xoshiro_get_double(void *state)
{
  return (double)(xoshiro_get(state) >> 11) * 0x1p-53;
}

static const gsl_rng_type xoshiro256 = {
    .name = "xoshiro256**",
    .max = UINT64_MAX,
    .min = 0,
    .size = 4 * sizeof(uint64_t),
    .set = xoshiro_set,
    .get = xoshiro_get,
    .get_double = xoshiro_get_double,
};

gsl_rng *random_stream(uint64_t seed, const char *purpose)
{
  uint64_t mix = fnv1a64(purpose);
  gsl_rng *rng = gsl_rng_alloc(&xoshiro256);
  gsl_rng_set(rng, seed + splitmix64(&mix));
  return rng;
}

struct zipf {
  gsl_ran_discrete_t *table;
};

struct zipf *zipf_new_weights(const double *weights, uint32_t count)
{
  struct zipf *zipf = g_new(struct zipf, 1);
  zipf->table = gsl_ran_discrete_preproc(count, weights);
  return zipf;
}

struct zipf *zipf_new(uint32_t count, double exponent)
{
  g_autofree double *weights = g_new(double, count);
  for (uint32_t i = 0; i < count; i++)
    weights[i] = exp(-exponent * log((double)i + 1));
  return zipf_new_weights(weights, count);
}

void zipf_free(struct zipf *zipf)
{
  if (!zipf)
    return;
  gsl_ran_discrete_free(zipf->table);
  g_free(zipf);
}

uint32_t zipf_draw(const struct zipf *zipf, gsl_rng *rng)
{
  return (uint32_t)gsl_ran_discrete(rng, zipf->table);
}

double zipf_probability(const struct zipf *zipf, uint32_t index)
{
  return gsl_ran_discrete_pdf(index, zipf->table);
}
