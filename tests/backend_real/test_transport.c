/* What every transport holds to, over loopback: right bytes in the right place, reads that end once,
 * whatever happens to the other end. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/units.h"
#include "transport_lab.h"

#define MIB (1U << 20)

/* Reads of random sizes of several models, many under way, each to a place of its own with blank around. */
TRANSPORT_TEST(random_reads_are_right_and_touch_nothing_else)
{
  enum { MODELS = 5, READS = 600, IMAGE = 3 * MIB + 4321, GAP = 13 };
  struct lab *lab = transport_lab_new(ops, 64 * MIB, 96 * MIB, NULL);
  for (uint32_t m = 0; m < MODELS; m++) {
    struct ranges place = lab_serve(lab, m, m * 1000, IMAGE, m == 0 ? 4096 : 4096U << 2 * m);
    g_free(place.range);
  }
  struct {
    uint32_t model, bytes;
    uint64_t offset, to;
  } read[READS];
  uint64_t to = GAP, bytes = 0;
  for (uint32_t i = 0; i < READS; i++) {
    read[i].model = g_rand_int_range(lab->random, 0, MODELS);
    uint32_t most = i % 4 == 0 ? MIB : i % 4 == 1 ? 100 : 100000;
    read[i].bytes = i < 4 ? MIB : (uint32_t)g_rand_int_range(lab->random, 1, (gint32)most + 1);
    read[i].offset =
        read[i].model * 1000 + g_rand_int_range(lab->random, 0, IMAGE - (gint32)read[i].bytes + 1);
    read[i].to = to;
    to += read[i].bytes + GAP;
    bytes += read[i].bytes;
    cr_assert(to <= lab->to.bytes);
    lab_read(lab, read[i].model, read[i].offset, read[i].to, read[i].bytes, i);
  }
  lab_wait(lab, READS);
  cr_assert_eq(lab->good, READS);
  for (uint32_t i = 0; i < READS; i++) {
    cr_assert(lab_has(lab, read[i].model, read[i].offset, read[i].to, read[i].bytes), "read %u", i);
    cr_assert(lab_blank(lab, read[i].to - GAP, GAP), "before read %u", i);
  }
  cr_assert(lab_blank(lab, to - GAP, GAP));
  cr_assert_eq(ops->reader_bytes(lab->reader), bytes);
  cr_assert_eq(ops->shelf_bytes(lab->shelf), bytes);
  transport_lab_free(lab);
}
