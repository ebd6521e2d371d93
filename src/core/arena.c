/* Addresses of one memory: the free ranges in order of address, neighbours joined; see arena.h.
 *
 * Best fit, the lowest address of equals: what fits nowhere whole takes the largest ranges whole and the rest
 * by best fit, which is as few pieces as can be. */
#include "core/arena.h"

#include <string.h>

#define FIRST_ROOM 4
#define ALIGN_MASK ((uint64_t)ARENA_ALIGN - 1)

struct arena {
  uint64_t base, size, left; /* multiples of ARENA_ALIGN */
  struct range *free;        /* [count] by offset, lengths multiples of ARENA_ALIGN, no two touch */
  uint32_t count, room;
};

uint64_t arena_bytes(uint64_t capacity_bytes, uint64_t entries)
{
  uint64_t most = UINT64_MAX & ~ALIGN_MASK, slack = 0;
  if (__builtin_mul_overflow(entries, ALIGN_MASK, &slack) || capacity_bytes > most - MIN(slack, most))
    return most;
  return (capacity_bytes + slack + ALIGN_MASK) & ~ALIGN_MASK;
}

static void range_append(struct range **range, uint32_t *count, uint32_t *room, struct range added)
{
  if (*count == *room) {
    *room = *room ? *room * 2 : FIRST_ROOM;
    *range = g_renew(struct range, *range, *room);
  }
  (*range)[(*count)++] = added;
}

struct arena *arena_new(uint64_t base, uint64_t bytes)
{
  struct arena *arena = g_new0(struct arena, 1);
  arena->base = base;
  arena_grow(arena, bytes);
  return arena;
}

void arena_free(struct arena *arena)
{
  if (!arena)
    return;
  g_free(arena->free);
  g_free(arena);
}

/* Makes [offset, offset + length), which is nobody's, free. */
static void free_add(struct arena *arena, uint64_t offset, uint64_t length)
{
  uint32_t low = 0, high = arena->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (arena->free[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  struct range *before = low > 0 ? &arena->free[low - 1] : NULL;
  struct range *after = low < arena->count ? &arena->free[low] : NULL;
  g_assert((!before || before->offset + before->length <= offset) &&
           (!after || offset + length <= after->offset));
  gboolean joins_before = before && before->offset + before->length == offset;
  gboolean joins_after = after && offset + length == after->offset;
  arena->left += length;
  if (joins_before) {
    before->length += length + (joins_after ? after->length : 0);
    if (joins_after)
      memmove(after, after + 1, (--arena->count - low) * sizeof *after);
  } else if (joins_after) {
    *after = (struct range){.offset = offset, .length = after->length + length};
  } else {
    range_append(&arena->free, &arena->count, &arena->room, (struct range){0});
    memmove(&arena->free[low + 1], &arena->free[low], (arena->count - 1 - low) * sizeof *arena->free);
    arena->free[low] = (struct range){.offset = offset, .length = length};
  }
}

void arena_grow(struct arena *arena, uint64_t bytes)
{
  bytes &= ~ALIGN_MASK;
  g_return_if_fail(bytes <= UINT64_MAX - arena->base - arena->size);
  if (bytes == 0)
    return;
  uint64_t end = arena->base + arena->size;
  arena->size += bytes;
  free_add(arena, end, bytes);
}

uint64_t arena_size(const struct arena *arena)
{
  return arena->size;
}

/* The smallest free range that holds bytes, or the largest. */
static uint32_t choose(const struct arena *arena, uint64_t bytes)
{
  uint32_t best = 0;
  for (uint32_t i = 1; i < arena->count; i++) {
    uint64_t length = arena->free[i].length, found = arena->free[best].length;
    if (found < bytes ? length > found : length >= bytes && length < found)
      best = i;
  }
  return best;
}

/* Takes the front of a free range. */
static struct range front_take(struct arena *arena, uint32_t index, uint64_t bytes)
{
  struct range *from = &arena->free[index];
  struct range taken = {.offset = from->offset, .length = MIN(bytes, from->length)};
  from->offset += taken.length;
  from->length -= taken.length;
  arena->left -= taken.length;
  if (from->length == 0)
    memmove(from, from + 1, (--arena->count - index) * sizeof *from);
  return taken;
}

gboolean arena_take(struct arena *arena, uint64_t bytes, struct ranges *ranges)
{
  g_return_val_if_fail(ranges->count == 0, FALSE);
  if (bytes > arena->left)
    return FALSE;
  while (bytes > 0) {
    uint64_t wanted = (bytes + ALIGN_MASK) & ~ALIGN_MASK; /* cannot overflow: it is at most what is left */
    struct range taken = front_take(arena, choose(arena, wanted), wanted);
    taken.length = MIN(taken.length, bytes);
    bytes -= taken.length;
    range_append(&ranges->range, &ranges->count, &ranges->room, taken);
  }
  return TRUE;
}

void arena_give(struct arena *arena, struct ranges *ranges)
{
  for (uint32_t i = 0; i < ranges->count; i++) {
    const struct range *range = &ranges->range[i];
    g_assert(range->offset >= arena->base && range->offset - arena->base < arena->size);
    free_add(arena, range->offset, (range->length + ALIGN_MASK) & ~ALIGN_MASK);
  }
  ranges->count = 0;
}

void ranges_clear(struct ranges *ranges)
{
  g_free(ranges->range);
  *ranges = (struct ranges){0};
}

uint64_t ranges_bytes(const struct ranges *ranges)
{
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < ranges->count; i++)
    bytes += ranges->range[i].length;
  return bytes;
}

uint64_t ranges_piece(const struct ranges *ranges, uint64_t at, uint64_t length, uint64_t *piece)
{
  for (uint32_t i = 0; i < ranges->count; i++) {
    const struct range *range = &ranges->range[i];
    if (at < range->length) {
      *piece = MIN(length, range->length - at);
      return range->offset + at;
    }
    at -= range->length;
  }
  *piece = 0;
  return 0;
}

void ranges_split(struct ranges *ranges, uint64_t at, struct ranges *tail)
{
  uint32_t i = 0;
  g_return_if_fail(tail->count == 0 && (at & ALIGN_MASK) == 0);
  while (i < ranges->count && at >= ranges->range[i].length)
    at -= ranges->range[i++].length;
  for (uint32_t k = i; k < ranges->count; k++) {
    struct range moved = ranges->range[k];
    if (k == i) {
      moved.offset += at;
      moved.length -= at;
    }
    range_append(&tail->range, &tail->count, &tail->room, moved);
  }
  if (i < ranges->count && at > 0)
    ranges->range[i++].length = at;
  ranges->count = i;
}
