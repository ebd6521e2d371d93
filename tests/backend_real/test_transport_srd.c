/* The verbs transport over a fake EFA (srd_fake.h), in cases that a real device brings about now and then. */
#include <criterion/criterion.h>

#include "backend_real/transport_verbs.h"
#include "srd_fake.h"
#include "verbs_lab.h"

#define MIB (1U << 20)

/* A megabyte takes 350 work requests, and the queue takes 512. */
enum { READ_MAX = 3000, QUEUE = 512, READS = 4 };

static struct lab *begin(void)
{
  srd_fake_begin(1);
  srd_fake_machine(TRUE, READ_MAX, 8928);
  struct lab *lab = transport_lab_new(&transport_verbs, 2 * MIB, READS * MIB, NULL);
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
  struct lab *lab = begin();
  rush(lab, read_nothing);
  lab_wait(lab, 2 + READS);
  cr_expect_eq(lab->good, 1 + READS);
  for (uint32_t i = 0; i < READS; i++)
    cr_expect(lab_has(lab, 1, 0, i * (uint64_t)MIB, MIB));
  end(lab);
}

Test(transport_srd, reads_of_a_dropped_peer_all_end)
{
  struct lab *lab = begin();
  rush(lab, drop);
  lab_wait(lab, 1 + READS);
  cr_expect_eq(lab->failed, READS - 1); /* the first was on its way whole, and has landed */
  end(lab);
}
