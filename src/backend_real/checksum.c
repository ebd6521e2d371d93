/* The checksum on the processor; see checksum.h. */
#include "backend_real/checksum.h"

#include <string.h>

#include "backend_real/lanes.h"

/* The factor of word i: odd, so that no change of the word is lost. */
static inline uint64_t factor(uint64_t i)
{
  return checksum_mix(i) | 1;
}

/* Four independent sums: the multiplications of one word wait for none of another. */
static uint64_t sum_words(const uint8_t *data, uint64_t first, uint64_t words)
{
  uint64_t sum[4] = {0}, w[4], i = 0;
  for (; i + 4 <= words; i += 4) {
    memcpy(w, data + 8 * i, sizeof w);
    sum[0] += w[0] * factor(first + i);
    sum[1] += w[1] * factor(first + i + 1);
    sum[2] += w[2] * factor(first + i + 2);
    sum[3] += w[3] * factor(first + i + 3);
  }
  for (; i < words; i++) {
    memcpy(w, data + 8 * i, sizeof w[0]);
    sum[0] += w[0] * factor(first + i);
  }
  return sum[0] + sum[1] + sum[2] + sum[3];
}

#if defined(__x86_64__)
LANES_INLINE uint64_t sum_lanes(const uint8_t *data, uint64_t first, uint64_t words)
{
  lanes index, sum[2] = {0};
  uint64_t i = 0;
  lanes_count(&index, first);
  for (; i + 2 * LANES <= words; i += 2 * LANES)
    for (unsigned k = 0; k < 2; k++) {
      lanes w, f = index;
      memcpy(&w, data + 8 * (i + k * LANES), sizeof w);
      lanes_mix(&f);
      sum[k] += w * (f | 1);
      index += LANES;
    }
  uint64_t total = sum_words(data + 8 * i, first + i, words - i);
  for (unsigned k = 0; k < LANES; k++)
    total += sum[0][k] + sum[1][k];
  return total;
}
#endif

LANES_DISPATCH(uint64_t, sum, (const uint8_t *data, uint64_t first, uint64_t words), (data, first, words))

/* The word that has n bytes of data from its byte `skip` on, and zeros elsewhere. */
static uint64_t part(const uint8_t *data, unsigned skip, unsigned n)
{
  uint64_t word = 0;
  for (unsigned k = 0; k < n; k++)
    word |= (uint64_t)data[k] << 8 * (skip + k);
  return word;
}

uint64_t checksum(const uint8_t *data, uint64_t offset, uint64_t bytes)
{
  uint64_t total = 0, index = offset / 8;
  unsigned skip = offset % 8;
  if (skip && bytes) {
    unsigned n = bytes < 8 - skip ? (unsigned)bytes : 8 - skip;
    total += part(data, skip, n) * factor(index++);
    data += n;
    bytes -= n;
  }
  uint64_t words = bytes / 8;
  total += sum(data, index, words);
  if (bytes % 8)
    total += part(data + 8 * words, 0, bytes % 8) * factor(index + words);
  return total;
}
