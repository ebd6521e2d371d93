/* What tests of the verbs transport share; see verbs_lab.h. */
#include "verbs_lab.h"

#include <string.h>

#define MIB (1U << 20)

void verbs_lab_honest(struct lab *lab, uint64_t tag)
{
  memset(lab->to.base, LAB_BLANK, 100000);
  lab_read(lab, 1, 0, 0, 100000, tag);
  lab_wait(lab, lab_ended(lab) + (lab_end(lab, tag) == LAB_PENDING));
  cr_assert_eq(lab_end(lab, tag), LAB_GOOD);
  cr_assert(lab_has(lab, 1, 0, 0, 100000));
}

struct lab *verbs_lab_new(void)
{
  struct lab *lab = transport_lab_new(&transport_verbs, 8 * MIB, 8 * MIB, NULL);
  struct ranges place = lab_serve(lab, 1, 0, 100000, 128 * 1024);
  g_free(place.range);
  return lab;
}

void verbs_lab_serve(struct lab *lab, uint32_t model, uint64_t bytes)
{
  struct range range = {lab->used, bytes};
  lab->used += (bytes / ARENA_ALIGN + 1) * ARENA_ALIGN;
  cr_assert(lab->used <= lab->from.bytes);
  for (uint64_t i = 0; i < bytes; i++)
    lab->from.base[range.offset + i] = lab_byte(model, i);
  lab->ops->shelf_serve(lab->shelf, model, 0, bytes, &(struct ranges){.range = &range, .count = 1});
  lab_pump(lab);
}
