/* Reads that wait: in order within a party, fair between parties; here each model is one. */
#include "backend_real/transport_tcp_queue.h"

#include <criterion/criterion.h>

enum { MODELS = 5, READ_MAX = 1 << 20 };

static void push(struct read_queue *queue, uint32_t server, uint32_t model, uint32_t bytes, uint64_t tag)
{
  read_queue_push(queue, model, &(struct read){.tag = tag, .server = server, .model = model, .bytes = bytes});
}

/* Any pushes and pops: what one model waits for comes in its order, all of it once; and any two models that
 * have waited all the while since the same moment have had the same bytes but for one read each. */
Test(transport_tcp_queue, models_share_by_bytes)
{
  for (uint32_t seed = 1; seed <= 50; seed++) {
    GRand *random = g_rand_new_with_seed(seed);
    struct read_queue queue = {0};
    uint64_t pushed[MODELS] = {0}, popped[MODELS] = {0}, had[MODELS][MODELS] = {{0}};
    for (int step = 0; step < 5000; step++) {
      uint32_t model = g_rand_int(random) % MODELS;
      if (g_rand_int(random) % 100 < (step < 3000 ? 55U : 20U)) {
        for (uint32_t other = 0; other < MODELS && pushed[model] == popped[model]; other++)
          had[model][other] = had[other][model] = 0; /* both wait from now on, or one does not */
        push(&queue, 0, model, 1 + (g_rand_int(random) % READ_MAX >> g_rand_int(random) % 12),
             pushed[model]++);
        continue;
      }
      const struct read *read = read_queue_first(&queue);
      uint64_t waiting = 0;
      for (uint32_t m = 0; m < MODELS; m++)
        waiting += pushed[m] - popped[m];
      cr_assert_eq(read != NULL, waiting > 0);
      if (!read)
        continue;
      model = read->model;
      cr_assert_eq(read->tag, popped[model]++, "out of its model's order");
      for (uint32_t other = 0; other < MODELS; other++) {
        had[model][other] += read->bytes;
        if (other != model && pushed[other] > popped[other])
          cr_assert_leq(had[model][other], had[other][model] + 2 * READ_MAX, "seed %u: model %u before %u",
                        seed, model, other);
      }
      read_queue_pop(&queue);
      for (uint32_t other = 0; other < MODELS && pushed[model] == popped[model]; other++)
        had[model][other] = had[other][model] = 0;
    }
    read_queue_clear(&queue);
    cr_expect_null(read_queue_first(&queue));
    g_rand_free(random);
  }
}

/* A model that comes while another has waited long does not make up for the time before. */
Test(transport_tcp_queue, who_comes_anew_has_no_claim_on_the_past)
{
  struct read_queue queue = {0};
  for (uint32_t i = 0; i < 100; i++)
    push(&queue, 0, 1, 1000, i);
  for (uint32_t i = 0; i < 50; i++)
    read_queue_pop(&queue);
  for (uint32_t i = 0; i < 20; i++)
    push(&queue, 0, 2, 1000, i);
  uint32_t of_new = 0;
  for (uint32_t i = 0; i < 20; i++) {
    of_new += read_queue_first(&queue)->model == 2;
    read_queue_pop(&queue);
  }
  cr_expect(of_new >= 9 && of_new <= 11, "%u of 20", of_new);
  read_queue_clear(&queue);
}

/* Reads of a server that is lost go, those of others stay in order. */
Test(transport_tcp_queue, a_lost_server_takes_its_reads_along)
{
  struct read_queue queue = {0}, lost = {0};
  for (uint32_t i = 0; i < 300; i++)
    push(&queue, i % 3, i % 2, 1 + i, i);
  read_queue_move(&queue, 1, &lost);
  uint64_t next[2] = {0, 1}, count = 0;
  const struct read *read;
  for (; (read = read_queue_first(&queue)); read_queue_pop(&queue), count++) {
    cr_assert_neq(read->server, 1);
    cr_assert_geq(read->tag, next[read->model]);
    next[read->model] = read->tag + 1;
  }
  for (; (read = read_queue_first(&lost)); read_queue_pop(&lost), count++)
    cr_assert_eq(read->server, 1);
  cr_expect_eq(count, 300);
  read_queue_clear(&queue);
  read_queue_clear(&lost);
}
