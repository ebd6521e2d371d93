/* Overlaid copies of a trace against all rows of all copies, turned and sorted by hand; the spool's search.
 */
#include <criterion/criterion.h>

#include "core/units.h"
#include "harness/overlay.h"
#include "harness/random.h"

#define ROWS_MAX   200
#define COPIES_MAX 9

struct turned {
  int64_t at_ns;
  uint32_t copy, order, row; /* order: within the copy */
};

static int by_time(const void *a, const void *b)
{
  const struct turned *x = a, *y = b;
  if (x->at_ns != y->at_ns)
    return x->at_ns < y->at_ns ? -1 : 1;
  if (x->copy != y->copy)
    return x->copy < y->copy ? -1 : 1;
  return x->order < y->order ? -1 : 1;
}

/* Few distinct times, so that ties and rows at both ends of the span are common. The first is 0. */
static uint32_t draw_arrivals(gsl_rng *rng, int64_t *arrival)
{
  uint32_t rows = 1 + (uint32_t)gsl_rng_uniform_int(rng, ROWS_MAX);
  arrival[0] = 0;
  for (uint32_t i = 1; i < rows; i++)
    arrival[i] = arrival[i - 1] + (int64_t)gsl_rng_uniform_int(rng, 3);
  return rows;
}

static struct ask_spool *spool_of(const int64_t *arrival, uint32_t rows)
{
  struct ask_spool *spool = ask_spool_new(NULL);
  cr_assert_not_null(spool);
  for (uint32_t i = 0; i < rows; i++)
    cr_assert(
        ask_spool_add(spool, &(struct ask){.arrival_ns = arrival[i], .input_tokens = (int32_t)i}, NULL));
  cr_assert(ask_spool_end(spool, NULL));
  cr_assert_eq(ask_spool_rows(spool), rows);
  return spool;
}

static void turn(const int64_t *arrival, uint32_t rows, uint32_t copy, int64_t offset_ns, struct turned *out)
{
  int64_t span_ns = arrival[rows - 1];
  uint32_t first = 0;
  while (first < rows && arrival[first] + offset_ns <= span_ns)
    first++;
  for (uint32_t i = 0; i < rows; i++) {
    uint32_t row = (first + i) % rows;
    int64_t at_ns = arrival[row] + offset_ns;
    out[i] = (struct turned){at_ns > span_ns ? at_ns - span_ns : at_ns, copy, i, row};
  }
}

Test(overlay, gives_every_row_of_every_copy_in_order)
{
  static struct turned expected[COPIES_MAX * ROWS_MAX];
  gsl_rng *rng = random_stream(1, "overlay test");
  for (uint64_t round = 0; round < 300; round++) {
    int64_t arrival[ROWS_MAX];
    uint32_t rows = draw_arrivals(rng, arrival), copies = 1 + (uint32_t)gsl_rng_uniform_int(rng, COPIES_MAX);
    gsl_rng *offsets = random_stream(round, "offsets"), *same = random_stream(round, "offsets");
    for (uint32_t c = 0; c < copies; c++) {
      int64_t offset_ns = c == 0 ? 0 : (int64_t)(gsl_rng_uniform(same) * (double)arrival[rows - 1]);
      turn(arrival, rows, c, offset_ns, &expected[c * rows]);
    }
    qsort(expected, copies * rows, sizeof *expected, by_time);
    struct overlay *overlay = overlay_new(spool_of(arrival, rows), arrival[rows - 1], copies, offsets, NULL);
    cr_assert_not_null(overlay);
    struct ask ask;
    for (uint32_t i = 0; i < copies * rows; i++) {
      cr_assert_eq(overlay_next(overlay, &ask, NULL), 1, "round %u: %u of %u", (unsigned)round, i,
                   copies * rows);
      cr_assert_eq(ask.arrival_ns, expected[i].at_ns, "round %u: row %u", (unsigned)round, i);
      cr_assert_eq(ask.input_tokens, (int32_t)expected[i].row, "round %u: row %u", (unsigned)round, i);
    }
    cr_assert_eq(overlay_next(overlay, &ask, NULL), 0);
    overlay_free(overlay);
    gsl_rng_free(offsets);
    gsl_rng_free(same);
  }
  gsl_rng_free(rng);
}

Test(overlay, search_finds_the_first_later_row)
{
  gsl_rng *rng = random_stream(2, "overlay test");
  for (int round = 0; round < 100; round++) {
    int64_t arrival[ROWS_MAX];
    uint32_t rows = draw_arrivals(rng, arrival);
    struct ask_spool *spool = spool_of(arrival, rows);
    for (int64_t at_ns = -1; at_ns <= arrival[rows - 1]; at_ns++) {
      uint64_t found, first = 0;
      while (first < rows && arrival[first] <= at_ns)
        first++;
      cr_assert(ask_spool_find(spool, at_ns, &found, NULL));
      cr_assert_eq(found, first, "round %d, %d rows", round, (int)rows);
    }
    ask_spool_free(spool);
  }
  gsl_rng_free(rng);
}
