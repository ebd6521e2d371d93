/* Images without a file: word i of a variant is mix(key + i), key a mix of profile name and seed.
 *
 * So every byte depends on profile, variant and offset, any part of it can be made at once, and no two words
 * of an image are equal. */
#include <pthread.h>
#include <string.h>

#include "backend_real/checksum.h"
#include "backend_real/image_kinds.h"
#include "backend_real/lanes.h"

#define STEP_BYTES 16384u /* made and summed within the first cache */

struct generated {
  struct image image;
  uint64_t key;
  pthread_mutex_t lock; /* over known and the checksums that are not */
  gboolean *known;      /* [layers] */
};

static void fill_words(uint8_t *to, uint64_t first, uint64_t words)
{
  for (uint64_t i = 0; i < words; i++) {
    uint64_t word = checksum_mix(first + i);
    memcpy(to + 8 * i, &word, sizeof word);
  }
}

#if defined(__x86_64__)
LANES_INLINE void fill_lanes(uint8_t *to, uint64_t first, uint64_t words)
{
  uint64_t i = 0;
  lanes index;
  lanes_count(&index, first);
  for (; i + LANES <= words; i += LANES) {
    lanes word = index;
    lanes_mix(&word);
    memcpy(to + 8 * i, &word, sizeof word);
    index += LANES;
  }
  fill_words(to + 8 * i, first + i, words - i);
}
#endif

LANES_DISPATCH(void, fill, (uint8_t * to, uint64_t first, uint64_t words), (to, first, words))

/* Bytes [skip, skip + n) of one word. */
static void copy_part(uint8_t *to, uint64_t word, unsigned skip, unsigned n)
{
  for (unsigned k = 0; k < n; k++)
    to[k] = (uint8_t)(word >> 8 * (skip + k));
}

static void generated_read(const struct image *image, uint64_t offset, uint64_t bytes, void *to)
{
  const struct generated *generated = (const struct generated *)image;
  uint64_t at = generated->key + offset / 8;
  unsigned skip = offset % 8;
  uint8_t *out = to;
  if (skip && bytes) {
    unsigned n = bytes < 8 - skip ? (unsigned)bytes : 8 - skip;
    copy_part(out, checksum_mix(at++), skip, n);
    out += n;
    bytes -= n;
  }
  fill(out, at, bytes / 8);
  if (bytes % 8)
    copy_part(out + bytes / 8 * 8, checksum_mix(at + bytes / 8), 0, bytes % 8);
}

static uint64_t layer_sum(const struct image *image, uint32_t layer)
{
  uint8_t step[STEP_BYTES];
  uint64_t begin = image->layer[layer].offset, bytes = image->layer[layer].bytes, sum = 0;
  for (uint64_t at = 0; at < bytes; at += STEP_BYTES) {
    uint64_t n = MIN(STEP_BYTES, bytes - at);
    generated_read(image, begin + at, n, step);
    sum += checksum(step, begin + at, n);
  }
  return sum;
}

/* Not computed under the lock: two threads that ask at once both do it, and get the same. */
static uint64_t generated_checksum(const struct image *image, uint32_t layer)
{
  struct generated *generated = (struct generated *)image;
  pthread_mutex_lock(&generated->lock);
  gboolean known = generated->known[layer];
  pthread_mutex_unlock(&generated->lock);
  if (!known) {
    uint64_t sum = layer_sum(image, layer);
    pthread_mutex_lock(&generated->lock);
    if (!generated->known[layer])
      image->layer[layer].checksum = sum;
    generated->known[layer] = TRUE;
    pthread_mutex_unlock(&generated->lock);
  }
  return image->layer[layer].checksum;
}

static void generated_free(struct image *image)
{
  struct generated *generated = (struct generated *)image;
  pthread_mutex_destroy(&generated->lock);
  g_free(generated->known);
  g_free(image->layer);
  g_free(image->name);
  g_free(generated);
}

/* FNV-1a, 64 bit. */
static uint64_t hash_name(const char *name)
{
  uint64_t hash = 0xcbf29ce484222325;
  for (; *name; name++)
    hash = (hash ^ (uint8_t)*name) * 0x100000001b3;
  return hash;
}

struct image *image_generate(const struct profile *profile, uint64_t seed)
{
  static const struct image_kind kind = {
      .free = generated_free,
      .read = generated_read,
      .checksum = generated_checksum,
  };
  struct generated *generated = g_new0(struct generated, 1);
  struct image *image = &generated->image;
  image->kind = &kind;
  image->name = g_strdup(profile->name);
  image->layers = profile->layers;
  image->layer = g_new0(struct image_layer, profile->layers);
  for (uint32_t i = 0; i < profile->layers; i++) {
    image->layer[i].offset = image->bytes;
    image->layer[i].bytes = profile->layer_bytes[i];
    image->bytes += profile->layer_bytes[i];
  }
  generated->key = checksum_mix(checksum_mix(hash_name(profile->name)) + seed);
  generated->known = g_new0(gboolean, profile->layers);
  pthread_mutex_init(&generated->lock, NULL);
  return image;
}
