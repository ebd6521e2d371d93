/* Generated images against their definition; packed ones in test_safetensors.c. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "backend_real/checksum.h"
#include "backend_real/image.h"

typedef struct image Image;
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Image, image_free)

/* Layers whose boundaries cut words, one of them empty. */
static struct profile *small_profile(const char *name)
{
  static const uint64_t bytes[] = {1000, 3, 0, 70001, 8, 1};
  struct profile *profile = profile_new(name, G_N_ELEMENTS(bytes));
  memcpy(profile->layer_bytes, bytes, sizeof bytes);
  profile_sum(profile);
  return profile;
}

static Image *small_image(const char *name, uint64_t seed)
{
  struct profile *profile = small_profile(name);
  Image *image = image_generate(profile, seed);
  profile_free(profile);
  return image;
}

Test(image, generated_is_the_profiles)
{
  g_autoptr(Image) image = small_image("net", 7);
  cr_assert_eq(image_bytes(image), 71013);
  cr_assert_eq(image_layers(image), 6);
  cr_assert_eq(image_tensors(image), 0);
  cr_assert_eq(image_layer(image, 3)->offset, 1003);
  cr_assert_eq(image_layer(image, 3)->bytes, 70001);
}

Test(image, generated_reads_the_same_at_any_offset)
{
  g_autoptr(Image) image = small_image("net", 7);
  g_autofree uint8_t *whole = g_malloc(71013);
  image_read(image, 0, 71013, whole);
  GRand *rand = g_rand_new_with_seed(1);
  for (int i = 0; i < 2000; i++) {
    uint8_t piece[1024];
    uint64_t bytes = (uint64_t)g_rand_int_range(rand, 0, i % 2 ? 1000 : 20);
    uint64_t offset = (uint64_t)g_rand_int_range(rand, 0, 71013 - (int)bytes + 1);
    memset(piece, 0xaa, sizeof piece);
    image_read(image, offset, bytes, piece);
    cr_assert_eq(memcmp(piece, whole + offset, bytes), 0);
    cr_assert_eq(piece[bytes], 0xaa, "wrote past the end");
  }
  g_rand_free(rand);
}

/* Variants and profiles share nothing: of a word's eight bytes, chance alone makes any equal. */
Test(image, generated_differ_by_seed_and_profile)
{
  g_autoptr(Image) one = small_image("net", 7);
  g_autoptr(Image) other_seed = small_image("net", 8);
  g_autoptr(Image) other_profile = small_image("ten", 7);
  g_autoptr(Image) same = small_image("net", 7);
  static uint8_t a[71013], b[71013];
  image_read(one, 0, sizeof a, a);
  image_read(same, 0, sizeof b, b);
  cr_assert_eq(memcmp(a, b, sizeof a), 0);
  Image *others[] = {other_seed, other_profile};
  for (size_t k = 0; k < G_N_ELEMENTS(others); k++) {
    image_read(others[k], 0, sizeof b, b);
    size_t equal = 0;
    for (size_t i = 0; i < sizeof a; i++)
      equal += a[i] == b[i];
    cr_assert_lt(equal, sizeof a / 100, "expected about 1 in 256, found %zu of %zu", equal, sizeof a);
    cr_assert_neq(image_checksum(one, 0, 6), image_checksum(others[k], 0, 6));
  }
}

Test(image, checksums_are_of_the_bytes)
{
  g_autoptr(Image) image = small_image("net", 7);
  static uint8_t whole[71013];
  image_read(image, 0, sizeof whole, whole);
  for (uint32_t i = 0; i < 6; i++) {
    const struct image_layer *layer = image_layer(image, i);
    cr_assert_eq(layer->checksum, checksum(whole + layer->offset, layer->offset, layer->bytes));
  }
  cr_assert_eq(image_checksum(image, 0, 6), checksum(whole, 0, sizeof whole));
  cr_assert_eq(image_checksum(image, 1, 4), checksum(whole + 1000, 1000, 70004));
  cr_assert_eq(image_checksum(image, 3, 3), 0);
  g_autoptr(GError) error = NULL;
  cr_assert(image_verify(image, &error));
}

static void *ask_all(void *image)
{
  uint64_t sum = 0;
  for (uint32_t i = 0; i < 6; i++)
    sum += image_layer(image, i)->checksum;
  return (void *)(uintptr_t)sum;
}

Test(image, checksums_from_many_threads)
{
  for (int round = 0; round < 20; round++) {
    g_autoptr(Image) image = small_image("net", (uint64_t)round);
    pthread_t thread[8];
    for (int i = 0; i < 8; i++)
      cr_assert_eq(pthread_create(&thread[i], NULL, ask_all, image), 0);
    for (int i = 0; i < 8; i++) {
      void *sum;
      pthread_join(thread[i], &sum);
      cr_assert_eq((uint64_t)(uintptr_t)sum, image_checksum(image, 0, 6));
    }
  }
}
