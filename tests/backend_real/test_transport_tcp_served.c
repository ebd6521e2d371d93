/* What a shelf serves, against a map of every byte. */
#include <criterion/criterion.h>

#include "backend_real/transport_tcp_served.h"

enum { IMAGE = 600, MODELS = 2, MEMORY = 100000 };

struct oracle {
  int32_t place[IMAGE]; /* of each byte; -1 = not served */
  uint32_t low, high;
};

/* Places of random lengths, in random order. */
static uint32_t random_place(GRand *random, uint32_t bytes, struct range *range)
{
  uint32_t count = 0;
  for (uint32_t done = 0; done < bytes; count++) {
    uint32_t length = g_rand_int_range(random, 1, 60);
    range[count] = (struct range){g_rand_int_range(random, 0, MEMORY - 100), MIN(length, bytes - done)};
    done += range[count].length;
  }
  return count;
}

static void oracle_add(struct oracle *oracle, uint32_t offset, const struct range *range, uint32_t count)
{
  uint32_t at = offset;
  for (uint32_t r = 0; r < count; r++)
    for (uint32_t i = 0; i < range[r].length; i++)
      oracle->place[at++] = (int32_t)(range[r].offset + i);
  oracle->low = MIN(oracle->low, offset);
  oracle->high = MAX(oracle->high, at);
}

static enum served_answer oracle_find(const struct oracle *oracle, uint32_t offset, uint32_t bytes)
{
  if (oracle->low == UINT32_MAX)
    return SERVED_NOT_HERE;
  if (offset < oracle->low || offset + bytes > oracle->high)
    return SERVED_NEVER;
  for (uint32_t i = 0; i < bytes; i++)
    if (oracle->place[offset + i] < 0)
      return SERVED_NOT_HERE;
  return SERVED_HERE;
}

static void check_find(const struct served *served, const struct oracle *oracle, uint32_t model,
                       GRand *random)
{
  static uint8_t memory[MEMORY];
  struct iovec piece[8];
  uint32_t offset = g_rand_int_range(random, 0, IMAGE), pieces, at = offset;
  uint32_t bytes = g_rand_int_range(random, 1, IMAGE - offset + 1), room = g_rand_int_range(random, 1, 9);
  enum served_answer expected = oracle_find(oracle, offset, bytes);
  cr_assert_eq(served_find(served, model, offset, bytes, memory, piece, room, &pieces), expected);
  if (expected != SERVED_HERE)
    return;
  cr_assert(pieces > 0 && pieces <= room);
  for (uint32_t p = 0; p < pieces; p++)
    for (uint32_t i = 0; i < piece[p].iov_len; i++)
      cr_assert_eq((uint8_t *)piece[p].iov_base + i - memory, oracle->place[at++]);
  cr_assert(at <= offset + bytes && (at == offset + bytes || pieces == room));
}

Test(transport_tcp_served, equals_a_map_of_bytes)
{
  GRand *random = g_rand_new_with_seed(5);
  for (uint32_t round = 0; round < 60; round++) {
    struct served *served = served_new();
    struct oracle oracle[MODELS];
    memset(oracle, 0xFF, sizeof oracle);
    oracle[0].high = oracle[1].high = 0;
    for (uint32_t step = 0; step < 120; step++) {
      struct range range[IMAGE];
      uint32_t model = g_rand_int_range(random, 0, MODELS), offset = g_rand_int_range(random, 0, IMAGE);
      uint32_t bytes = g_rand_int_range(random, 1, IMAGE - offset + 1);
      if (g_rand_boolean(random)) {
        uint32_t count = random_place(random, bytes, range);
        served_add(served, model, offset, bytes, &(struct ranges){.range = range, .count = count});
        oracle_add(&oracle[model], offset, range, count);
      } else {
        served_remove(served, model, offset, bytes);
        memset(oracle[model].place + offset, 0xFF, bytes * sizeof *oracle[model].place);
      }
      for (uint32_t i = 0; i < 4; i++)
        check_find(served, &oracle[model], model, random);
    }
    served_free(served);
  }
  g_rand_free(random);
}
