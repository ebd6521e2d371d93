/* The verbs transport over a fake EFA (srd_fake.h), in cases that a real device brings about now and then. */
#include <criterion/criterion.h>

#include "backend_real/transport_verbs_shelf.h"
#include "srd_fake.h"
#include "verbs_lab.h"

#define MIB (1U << 20)

/* A megabyte takes 350 work requests, and the queue takes 512. */
enum { READ_MAX = 3000, QUEUE = 512, READS = 4 };

static struct lab *begin(uint64_t from_bytes)
{
  srd_fake_begin(1);
  srd_fake_machine(TRUE, READ_MAX, 8928);
  return transport_lab_new(&transport_verbs, from_bytes, READS * MIB, NULL);
}

/* Model 1 is a megabyte, and was read once. */
static struct lab *begin_reading(void)
{
  struct lab *lab = begin(2 * MIB);
  verbs_lab_serve(lab, 1, MIB);
  lab_read(lab, 1, 0, 0, MIB, 0);
  lab_wait(lab, 1);
  cr_assert_eq(lab->good, 1);
  return lab;
}

static void end(struct lab *lab)
{
  transport_lab_free(lab);
  srd_fake_machine(FALSE, 0, 0);
  srd_fake_end();
}

/* All that the queue took ends between the reader's last look and its going to sleep: no completion comes
 * after. wake: makes the reader's thread look. */
static void rush(struct lab *lab, void (*wake)(struct lab *lab))
{
  struct srd_fake_counts before, now;
  gint64 deadline = g_get_monotonic_time() + LAB_WAIT_NS / 1000;
  srd_fake_counts(&before);
  srd_fake_hold(TRUE);
  for (uint32_t i = 0; i < READS; i++)
    lab_read(lab, 1, 0, i * (uint64_t)MIB, MIB, 1 + i);
  srd_fake_rush();
  wake(lab);
  do {
    srd_fake_counts(&now);
    cr_assert_lt(g_get_monotonic_time(), deadline);
  } while (now.reads < before.reads + QUEUE);
  srd_fake_hold(FALSE);
}

/* A read that fails at once is told by the reader's thread. */
static void read_nothing(struct lab *lab)
{
  lab_read(lab, 1, 0, 0, 0, 1 + READS);
}

static void drop(struct lab *lab)
{
  lab->ops->reader_drop(lab->reader, LAB_SHELF);
}

Test(transport_srd, no_completion_is_left_when_the_reader_sleeps)
{
  struct lab *lab = begin_reading();
  rush(lab, read_nothing);
  lab_wait(lab, 2 + READS);
  cr_expect_eq(lab->good, 1 + READS);
  for (uint32_t i = 0; i < READS; i++)
    cr_expect(lab_has(lab, 1, 0, i * (uint64_t)MIB, MIB));
  end(lab);
}

Test(transport_srd, reads_of_a_dropped_peer_all_end)
{
  struct lab *lab = begin_reading();
  rush(lab, drop);
  lab_wait(lab, 1 + READS);
  cr_expect_eq(lab->failed, READS - 1); /* the first was on its way whole, and has landed */
  end(lab);
}

/* --- what is served
 * ------------------------------------------------------------------------------------------------*/

static uint32_t regions(struct lab *lab)
{
  g_mutex_lock(&lab->shelf->lock);
  uint32_t count = spans_count(lab->shelf->regions);
  g_mutex_unlock(&lab->shelf->lock);
  return count;
}

/* A large range is registered in chunks: reads cross their ends, and of one alone a part ends. */
Test(transport_srd, large_ranges_are_registered_in_chunks)
{
  enum { CHUNK = 32 * MIB, BYTES = 2 * CHUNK + 6 * MIB + 5000 };
  struct lab *lab = begin(BYTES + MIB);
  verbs_lab_serve(lab, 1, BYTES);
  cr_assert_eq(regions(lab), 3);
  lab_read(lab, 1, CHUNK - 5, 0, MIB, 0);
  lab_read(lab, 1, 2 * CHUNK - MIB + 1, MIB, MIB, 1);
  lab_read(lab, 1, BYTES - 7000, 2 * MIB, 7000, 2);
  lab_wait(lab, 3);
  cr_assert_eq(lab->good, 3);
  cr_expect(lab_has(lab, 1, CHUNK - 5, 0, MIB));
  cr_expect(lab_has(lab, 1, 2 * CHUNK - MIB + 1, MIB, MIB));
  cr_expect(lab_has(lab, 1, BYTES - 7000, 2 * MIB, 7000));
  lab->ops->shelf_serve(lab->shelf, 1, CHUNK + MIB, MIB, NULL);
  lab_pump(lab);
  cr_expect_eq(regions(lab), 4);
  lab_read(lab, 1, CHUNK + MIB - 100, 0, 101, 3);
  lab_read(lab, 1, CHUNK + MIB - 100, 0, 100, 4);
  lab_read(lab, 1, CHUNK + 2 * MIB, 0, 100, 5);
  lab_wait(lab, 6);
  cr_expect_eq(lab->failed, 1);
  cr_expect_eq(lab_end(lab, 3), LAB_FAILED);
  lab->ops->shelf_serve(lab->shelf, 1, 0, BYTES, NULL);
  cr_expect_eq(regions(lab), 0);
  end(lab);
}

/* One that cannot be registered is not served, and that is told. */
Test(transport_srd, a_chunk_that_cannot_be_registered_is_told)
{
  enum { BYTES = 70 * MIB };
  struct lab *lab = begin(BYTES);
  struct range range = {0, BYTES};
  cr_expect_null(lab->ops->shelf_failure(lab->shelf));
  srd_fake_fail(2);
  lab->ops->shelf_serve(lab->shelf, 1, 0, BYTES, &(struct ranges){.range = &range, .count = 1});
  cr_expect_str_eq(lab->ops->shelf_failure(lab->shelf), "the fake device makes no more");
  cr_expect_lt(regions(lab), 3);
  end(lab);
}

/* --- several NICs
 * --------------------------------------------------------------------------------------------------*/

/* However many each end has, in whatever order, a line asks by the keys of the NIC that it leads to. */
Test(transport_srd, several_devices)
{
  static const struct {
    const char *reader, *shelf;
    uint32_t connections;
  } ends[] = {{"efa_0,efa_1", "efa_0,efa_1", 0},
              {"efa_0,efa_1", "efa_1,efa_0", 4},
              {"efa_1", "efa_0,efa_1", 3},
              {"efa_1,efa_0", "efa_1", 0},
              {"efa_0", "efa_1", 0}};
  for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
    const struct transport_options of_reader = {.rdma_device = ends[i].reader,
                                                .connections = ends[i].connections},
                                   of_shelf = {.rdma_device = ends[i].shelf};
    srd_fake_begin(1);
    srd_fake_machine(TRUE, 70000, 8928);
    srd_fake_second();
    struct lab *lab = lab_new_reader(&transport_verbs, 2 * MIB, READS * MIB, &of_reader);
    lab_open_shelf(lab, "127.0.0.1:0", &of_shelf);
    verbs_lab_serve(lab, 1, MIB);
    for (uint32_t r = 0; r < READS; r++)
      lab_read(lab, 1, 0, r * (uint64_t)MIB, MIB, r);
    lab_wait(lab, READS);
    cr_expect_eq(lab->good, READS, "ends %u", i);
    for (uint32_t r = 0; r < READS; r++)
      cr_expect(lab_has(lab, 1, 0, r * (uint64_t)MIB, MIB), "ends %u", i);
    end(lab);
  }
}
