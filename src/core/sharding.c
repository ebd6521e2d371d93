/* Placements of model images over memory servers, and what loads read of them; see sharding.h. */
#include <string.h>
#include "core/error.h"
#include "core/sharding.h"

static const char *const names[] = {
    [SHARDING_PER_APP] = "per-app",
    [SHARDING_HORIZONTAL] = "horizontal",
    [SHARDING_VERTICAL] = "vertical",
    [SHARDING_HYBRID] = "hybrid",
};

gboolean sharding_parse(const char *text, enum sharding_kind *kind, GError **error)
{
  for (guint i = 0; i < G_N_ELEMENTS(names); i++)
    if (strcmp(text, names[i]) == 0) {
      *kind = (enum sharding_kind)i;
      return TRUE;
    }
  return input_error(error, NULL, 0, "expected per-app, horizontal, vertical or hybrid, found '%s'", text);
}

const char *sharding_name(enum sharding_kind kind)
{
  return names[kind];
}

static void add_extent(GArray *extents, uint64_t offset, uint64_t length, uint32_t slot)
{
  struct extent extent = {.offset = offset, .length = length, .slot = slot};
  if (length > 0)
    g_array_append_val(extents, extent);
}

/* Cuts [offset, offset + length) evenly over the slots; the remainder's bytes go to the lowest. */
static void cut_evenly(GArray *extents, uint64_t offset, uint64_t length, uint32_t slots)
{
  uint64_t part = length / slots, more = length % slots;
  for (uint32_t slot = 0; slot < slots; slot++) {
    uint64_t bytes = part + (slot < more);
    add_extent(extents, offset, bytes, slot);
    offset += bytes;
  }
}

static uint64_t image_bytes(const struct grouping *grouping)
{
  uint64_t bytes = 0;
  for (uint32_t j = 0; j < grouping->groups; j++)
    bytes += grouping->bytes[j];
  return bytes;
}

struct placement *placement_new(enum sharding_kind kind, const struct grouping *home, uint32_t slots,
                                uint32_t rotation)
{
  GArray *extents = g_array_new(FALSE, FALSE, sizeof(struct extent));
  uint64_t offset = 0;
  if (kind == SHARDING_PER_APP)
    add_extent(extents, 0, image_bytes(home), rotation % slots);
  else if (kind == SHARDING_VERTICAL)
    cut_evenly(extents, 0, image_bytes(home), slots);
  else
    for (uint32_t j = 0; j < home->groups; offset += home->bytes[j++]) {
      if (kind == SHARDING_HYBRID)
        cut_evenly(extents, offset, home->bytes[j], slots);
      else
        add_extent(extents, offset, home->bytes[j], j % slots);
    }
  struct placement *placement = g_new0(struct placement, 1);
  placement->slots = slots;
  placement->extents = extents->len;
  placement->extent = (struct extent *)(void *)g_array_free(extents, FALSE);
  return placement;
}

void placement_free(struct placement *placement)
{
  if (!placement)
    return;
  g_free(placement->extent);
  g_free(placement);
}

uint64_t placement_slot_bytes(const struct placement *placement, uint32_t slot)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < placement->extents; i++)
    if (placement->extent[i].slot == slot)
      bytes += placement->extent[i].length;
  return bytes;
}

/* Streams are the slots that hold anything, in order of slot. stream_of[slot] receives the stream. */
static uint32_t number_streams(const struct placement *placement, uint32_t *stream_of, uint32_t *slot)
{
  uint32_t streams = 0;
  for (uint32_t s = 0; s < placement->slots; s++)
    if (placement_slot_bytes(placement, s) > 0) {
      slot[streams] = s;
      stream_of[s] = streams++;
    }
  return streams;
}

struct fetch_plan *fetch_plan_new(const struct placement *placement, const struct grouping *grouping)
{
  struct fetch_plan *plan = g_new0(struct fetch_plan, 1);
  g_autofree uint32_t *stream_of = g_new0(uint32_t, placement->slots);
  plan->groups = grouping->groups;
  plan->slot = g_new0(uint32_t, placement->slots);
  plan->streams = number_streams(placement, stream_of, plan->slot);
  plan->bytes = g_new0(uint64_t, MAX(1, (size_t)plan->groups * plan->streams));
  plan->group_bytes = g_new0(uint64_t, plan->groups);
  uint64_t offset = 0;
  uint32_t first = 0; /* extents before it end before the group */
  for (uint32_t j = 0; j < grouping->groups; j++) {
    uint64_t end = offset + grouping->bytes[j];
    for (uint32_t i = first; i < placement->extents && placement->extent[i].offset < end; i++) {
      const struct extent *extent = &placement->extent[i];
      uint64_t last = extent->offset + extent->length;
      if (last <= offset) {
        first = i + 1;
        continue;
      }
      plan->bytes[(size_t)j * plan->streams + stream_of[extent->slot]] +=
          MIN(last, end) - MAX(extent->offset, offset);
    }
    plan->group_bytes[j] = grouping->bytes[j];
    plan->total_bytes += grouping->bytes[j];
    offset = end;
  }
  return plan;
}

void fetch_plan_free(struct fetch_plan *plan)
{
  if (!plan)
    return;
  g_free(plan->slot);
  g_free(plan->bytes);
  g_free(plan->group_bytes);
  g_free(plan);
}
