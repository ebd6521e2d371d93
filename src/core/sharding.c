/* Placements of model images on memory servers and the fetch plans cut along them; see sharding.h. */
#include "core/sharding.h"

#include <string.h>
#include "core/error.h"

static const char *const names[] = {
    [SHARDING_PER_APP] = "per-app",
    [SHARDING_HORIZONTAL] = "horizontal",
    [SHARDING_VERTICAL] = "vertical",
    [SHARDING_HYBRID] = "hybrid",
};

gboolean sharding_parse(const char *text, enum sharding_kind *kind, GError **error)
{
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
    if (strcmp(names[i], text) == 0) {
      *kind = (enum sharding_kind)i;
      return TRUE;
    }
  }
  return input_error(error, NULL, 0,
                     "expected a sharding (per-app, horizontal, vertical or hybrid), found '%s'", text);
}

const char *sharding_name(enum sharding_kind kind)
{
  return names[kind];
}

/* Appends a range at the end of the image; one that continues the last extent's server extends it. */
static void extents_append(GArray *extents, uint64_t length, uint32_t slot)
{
  struct extent *last = extents->len ? &g_array_index(extents, struct extent, extents->len - 1) : NULL;
  struct extent next = {.offset = last ? last->offset + last->length : 0, .length = length, .slot = slot};
  if (length == 0)
    return;
  if (last && last->slot == slot)
    last->length += length;
  else
    g_array_append_val(extents, next);
}

/* Appends a range cut evenly over all slots; the remainder's bytes go to the lowest ones. */
static void extents_append_even(GArray *extents, uint64_t length, uint32_t slots)
{
  for (uint32_t slot = 0; slot < slots; slot++)
    extents_append(extents, length / slots + (slot < length % slots), slot);
}

struct placement *placement_new(enum sharding_kind kind, const struct grouping *home, uint32_t slots,
                                uint32_t rotation)
{
  g_return_val_if_fail(slots > 0, NULL);
  GArray *extents = g_array_new(FALSE, FALSE, sizeof(struct extent));
  uint64_t total = 0;
  for (uint32_t j = 0; j < home->groups; j++) {
    total += home->bytes[j];
    if (kind == SHARDING_HORIZONTAL)
      extents_append(extents, home->bytes[j], j % slots);
    else if (kind == SHARDING_HYBRID)
      extents_append_even(extents, home->bytes[j], slots);
  }
  if (kind == SHARDING_PER_APP)
    extents_append(extents, total, rotation % slots);
  else if (kind == SHARDING_VERTICAL)
    extents_append_even(extents, total, slots);
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

/* Names the plan's streams: the slots that hold anything, lowest first. Returns the stream of each slot; free
 * it. */
static uint32_t *streams_number(struct fetch_plan *plan, const struct extent *extent, uint32_t extents,
                                uint32_t slots)
{
  uint32_t *stream_of = g_new0(uint32_t, slots);
  for (uint32_t i = 0; i < extents; i++)
    stream_of[extent[i].slot] = 1;
  plan->slot = g_new(uint32_t, slots);
  for (uint32_t slot = 0; slot < slots; slot++) {
    if (!stream_of[slot])
      continue;
    stream_of[slot] = plan->streams;
    plan->slot[plan->streams++] = slot;
  }
  return stream_of;
}

/* A part of a group that lies in one extent. */
struct part {
  struct piece piece;
  uint32_t stream;
};

/* Where the cut of extents into groups has come to. */
struct cut {
  const struct extent *extent, *end;
  uint64_t taken; /* bytes of the current extent that earlier groups took */
};

/* Appends the parts of the next group, of `wanted` bytes, in order of offset. */
static void group_cut(struct cut *cut, uint64_t wanted, const uint32_t *stream_of, GArray *parts)
{
  while (wanted && cut->extent < cut->end) {
    uint64_t length = MIN(wanted, cut->extent->length - cut->taken);
    struct part part = {.piece = {.offset = cut->extent->offset + cut->taken, .length = length},
                        .stream = stream_of[cut->extent->slot]};
    g_array_append_val(parts, part);
    wanted -= length;
    cut->taken += length;
    if (cut->taken == cut->extent->length) {
      cut->taken = 0;
      cut->extent++;
    }
  }
}

/* Enters a group's parts into the plan, by stream; `pieces` are there from the groups before. */
static uint32_t group_enter(struct fetch_plan *plan, uint32_t group, const struct part *part, uint32_t parts,
                            uint32_t pieces)
{
  for (uint32_t s = 0; s < plan->streams; s++) {
    size_t at = (size_t)group * plan->streams + s;
    plan->first_piece[at] = pieces;
    for (uint32_t i = 0; i < parts; i++)
      if (part[i].stream == s) {
        plan->piece[pieces++] = part[i].piece;
        plan->bytes[at] += part[i].piece.length;
      }
    plan->group_bytes[group] += plan->bytes[at];
  }
  return pieces;
}

struct fetch_plan *fetch_plan_cut(const struct extent *extent, uint32_t extents, uint32_t slots,
                                  const uint64_t *group_bytes, uint32_t groups)
{
  struct fetch_plan *plan = g_new0(struct fetch_plan, 1);
  g_autofree uint32_t *stream_of = streams_number(plan, extent, extents, slots);
  GArray *parts = g_array_new(FALSE, FALSE, sizeof(struct part));
  struct cut cut = {.extent = extent, .end = extent + extents};
  uint64_t offset = extents ? extent[0].offset : 0;
  uint32_t pieces = 0;
  plan->groups = groups;
  plan->bytes = g_new0(uint64_t, (size_t)groups * plan->streams);
  plan->group_bytes = g_new0(uint64_t, groups);
  plan->group_offset = g_new0(uint64_t, groups);
  plan->first_piece = g_new0(uint32_t, (size_t)groups * plan->streams + 1);
  plan->piece = g_new(struct piece, (size_t)groups + extents); /* each cut and each end begins one */
  for (uint32_t j = 0; j < groups; j++) {
    g_array_set_size(parts, 0);
    group_cut(&cut, group_bytes[j], stream_of, parts);
    pieces = group_enter(plan, j, (const struct part *)(const void *)parts->data, parts->len, pieces);
    plan->group_offset[j] = offset;
    offset += plan->group_bytes[j];
    plan->total_bytes += plan->group_bytes[j];
  }
  plan->first_piece[(size_t)groups * plan->streams] = pieces;
  g_array_unref(parts);
  return plan;
}

struct fetch_plan *fetch_plan_new(const struct placement *placement, const struct grouping *grouping)
{
  return fetch_plan_cut(placement->extent, placement->extents, placement->slots, grouping->bytes,
                        grouping->groups);
}

void fetch_plan_free(struct fetch_plan *plan)
{
  if (!plan)
    return;
  g_free(plan->slot);
  g_free(plan->bytes);
  g_free(plan->group_bytes);
  g_free(plan->group_offset);
  g_free(plan->first_piece);
  g_free(plan->piece);
  g_free(plan);
}
