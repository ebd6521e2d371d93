/* The checksum against its definition word by word, and what checksum.h promises of it. */
#include <criterion/criterion.h>
#include <glib.h>
#include <string.h>

#include "backend_real/checksum.h"

/* Byte by byte, as the definition reads. */
static uint64_t by_definition(const uint8_t *data, uint64_t offset, uint64_t bytes)
{
  uint64_t sum = 0;
  for (uint64_t p = offset; p < offset + bytes; p++)
    sum += ((uint64_t)data[p - offset] << 8 * (p % 8)) * (checksum_mix(p / 8) | 1);
  return sum;
}

static void fill_random(GRand *rand, uint8_t *data, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    data[i] = (uint8_t)g_rand_int(rand);
}

Test(checksum, equals_its_definition)
{
  GRand *rand = g_rand_new_with_seed(1);
  static uint8_t data[4096];
  fill_random(rand, data, sizeof data);
  cr_assert_eq(checksum(data, 5, 0), 0);
  for (int i = 0; i < 3000; i++) {
    uint64_t bytes = (uint64_t)g_rand_int_range(rand, 0, i % 2 ? 4000 : 40);
    uint64_t from = (uint64_t)g_rand_int_range(rand, 0, 64);
    uint64_t offset = (uint64_t)g_rand_int(rand) << g_rand_int_range(rand, 0, 20);
    offset += (uint64_t)g_rand_int_range(rand, 0, 8);
    cr_assert_eq(checksum(data + from, offset, bytes), by_definition(data + from, offset, bytes));
  }
  g_rand_free(rand);
}

/* The known value of one word: splitmix64's first output from seed 0 is 0xe220a8397b1dcdaf. */
Test(checksum, factor_is_splitmix64s)
{
  uint8_t one[8] = {1};
  cr_assert_eq(checksum_mix(0), 0xe220a8397b1dcdaf);
  cr_assert_eq(checksum(one, 0, 8), 0xe220a8397b1dcdaf | 1);
}

Test(checksum, parts_add_up_however_they_are_cut)
{
  GRand *rand = g_rand_new_with_seed(2);
  static uint8_t data[20000];
  fill_random(rand, data, sizeof data);
  for (int i = 0; i < 300; i++) {
    uint64_t offset = g_rand_int(rand), bytes = (uint64_t)g_rand_int_range(rand, 1, sizeof data), sum = 0;
    for (uint64_t at = 0; at < bytes;) {
      uint64_t piece = (uint64_t)g_rand_int_range(rand, 1, i % 3 ? 3000 : 12);
      piece = MIN(piece, bytes - at);
      sum += checksum(data + at, offset + at, piece);
      at += piece;
    }
    cr_assert_eq(sum, checksum(data, offset, bytes));
  }
  g_rand_free(rand);
}

Test(checksum, every_changed_byte_is_seen)
{
  GRand *rand = g_rand_new_with_seed(3);
  static uint8_t data[777];
  fill_random(rand, data, sizeof data);
  uint64_t right = checksum(data, 1003, sizeof data);
  for (size_t i = 0; i < sizeof data; i++)
    for (unsigned change = 1; change < 256; change++) {
      data[i] ^= (uint8_t)change;
      cr_assert_neq(checksum(data, 1003, sizeof data), right);
      data[i] ^= (uint8_t)change;
    }
  g_rand_free(rand);
}

/* Pieces that changed places, came from elsewhere in the image, or came twice: the errors of a wrong
 * transfer. */
Test(checksum, swapped_words_and_wrong_places_are_seen)
{
  GRand *rand = g_rand_new_with_seed(4);
  static uint8_t data[4096], other[4096];
  fill_random(rand, data, sizeof data);
  uint64_t right = checksum(data, 0, sizeof data);
  for (int i = 0; i < 2000; i++) {
    size_t a = 8 * (size_t)g_rand_int_range(rand, 0, 256), b = 8 * (size_t)g_rand_int_range(rand, 256, 512);
    memcpy(other, data, sizeof data);
    memcpy(other + a, data + b, 8);
    cr_assert_neq(checksum(other, 0, sizeof other), right);
    memcpy(other + b, data + a, 8);
    cr_assert_neq(checksum(other, 0, sizeof other), right);
  }
  cr_assert_neq(checksum(data, 4096, sizeof data), right);
  g_rand_free(rand);
}
