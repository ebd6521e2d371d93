/* Random streams: one generator per purpose, so that a draw for one purpose never shifts another's.
 *
 * The generator is xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM
 * TOMS 47(4), 2021; period 2^256 - 1) as a gsl_rng_type, because GSL's own generators take 32 bits of seed
 * only and their uniform doubles have 32 bits. Its state is four outputs of splitmix64 started from seed +
 * mix(FNV-1a(purpose)). */
#ifndef DM_RANDOM_H
#define DM_RANDOM_H

#include <stdint.h>
#include <gsl/gsl_rng.h>

/* Owned by the caller: gsl_rng_free. purpose: a fixed word such as "arrivals"; different words give
 * independent streams. */
gsl_rng *random_stream(uint64_t seed, const char *purpose);

/* Draws 0 … count-1 with P(i) proportional to 1 / (i + 1)^exponent, in constant time (Walker's alias method).
 */
struct zipf;
struct zipf *zipf_new(uint32_t count, double exponent); /* count >= 1, 0 <= exponent <= 10 */
/* The same for any weights (non-negative, finite, with a positive sum). */
struct zipf *zipf_new_weights(const double *weights, uint32_t count);
void zipf_free(struct zipf *zipf);
uint32_t zipf_draw(const struct zipf *zipf, gsl_rng *rng);
double zipf_probability(const struct zipf *zipf, uint32_t index);

#endif
