/* A bounded set of models with pins and eviction; see tier.h, and tier_part.h for how entries are kept.
 *
 * Every way in asks room_after() first and every way out subtracts what was added, so `used` passes
 * `capacity` only where tier_set_capacity lowers it under what is pinned. */
#include "core/tier_part.h"

struct tier *tier_new(uint64_t capacity_bytes, gboolean unbounded, uint32_t models_max, uint32_t models,
                      const struct tier_policy *policy, tier_evicted evicted, void *context)
{
  struct tier *tier = g_malloc0(sizeof(struct tier) + models * sizeof(uint32_t));
  tier->capacity = unbounded ? UINT64_MAX : capacity_bytes;
  tier->models_max = models_max;
  tier->models = models;
  tier->policy = policy;
  tier->evicted = evicted;
  tier->context = context;
  tier->now_ns = INT64_MIN;
  if (policy->counts)
    tier->popularity = popularity_new(models);
  tier->free_slot = tier->oldest = tier->youngest = NO_SLOT;
  for (uint32_t i = 0; i < models; i++)
    tier->slot_of[i] = NO_SLOT;
  return tier;
}

void tier_free(struct tier *tier)
{
  if (!tier)
    return;
  if (tier->popularity)
    popularity_free(tier->popularity);
  for (uint32_t i = 0; tier->place && i < tier->slots; i++)
    ranges_clear(&tier->place[i]);
  ranges_clear(&tier->held_place);
  arena_free(tier->arena);
  g_free(tier->place);
  g_free(tier->slot);
  g_free(tier->candidate);
  g_free(tier);
}

static void clock_advance(struct tier *tier, int64_t now_ns)
{
  tier->now_ns = MAX(tier->now_ns, now_ns);
}

/* --- places --- */

uint64_t tier_memory_bytes(uint64_t capacity_bytes, uint32_t models_max, uint32_t models, uint64_t smallest)
{
  uint64_t entries = models_max ? MIN(models, models_max) : models;
  if (smallest > 0)
    entries = MIN(entries, capacity_bytes / smallest);
  return arena_bytes(capacity_bytes, entries + 1); /* and what is held */
}

void tier_place_from(struct tier *tier, uint64_t base, uint64_t smallest)
{
  g_return_if_fail(tier->slots == 0 && tier->held == 0 && tier->capacity != UINT64_MAX);
  tier->smallest = smallest;
  tier->arena =
      arena_new(base, tier_memory_bytes(tier->capacity, tier->models_max, tier->models, tier->smallest));
}

/* The account says that there is room, and the memory is as large as any account within it needs. */
static void room_take(struct tier *tier, uint64_t bytes, struct ranges *place)
{
  gboolean taken = arena_take(tier->arena, bytes, place);
  g_assert(taken);
}

static void place_give(struct tier *tier, uint32_t slot)
{
  if (tier->arena)
    arena_give(tier->arena, &tier->place[slot]);
}

const struct ranges *tier_place(const struct tier *tier, uint32_t model)
{
  return tier->arena && slot_find(tier, model) ? &tier->place[tier->slot_of[model]] : NULL;
}

const struct ranges *tier_held_place(const struct tier *tier)
{
  return tier->arena && tier->held > 0 ? &tier->held_place : NULL;
}

const struct ranges *tier_victim_place(const struct tier *tier)
{
  return tier->arena ? &tier->place[tier->leaving] : NULL;
}

/* --- victims --- */

/* Do `bytes` in `entries` more entries fit once freed bytes and entries have left? */
static gboolean room_after(const struct tier *tier, uint64_t bytes, uint32_t entries, uint64_t freed_bytes,
                           uint32_t freed)
{
  uint64_t used = tier->used - freed_bytes;
  uint32_t count = tier->count - freed;
  if (used > tier->capacity || bytes > tier->capacity - used)
    return FALSE;
  return entries == 0 || tier->models_max == 0 ||
         (count < tier->models_max && entries <= tier->models_max - count);
}

static double slot_value(const struct tier *tier, struct slot *slot, int64_t now_ns)
{
  if (tier->popularity)
    slot->entry.popularity = popularity_count(tier->popularity, slot->entry.model, now_ns);
  return tier->policy->value(&slot->entry, now_ns);
}

/* Lists the evictable entries, longest unused first; returns their number. */
static uint32_t candidates_list(const struct tier *tier, int64_t now_ns)
{
  uint32_t n = 0;
  for (uint32_t i = tier->oldest; i != NO_SLOT; i = tier->slot[i].next)
    if (slot_evictable(&tier->slot[i]))
      tier->candidate[n++] = (struct candidate){.value = slot_value(tier, &tier->slot[i], now_ns), .slot = i};
  return n;
}

/* Moves the first of the least valued candidates to `from`, keeping the others in their order, so that ties
 * go to the longest unused, then the lowest id. */
static void candidate_select(const struct tier *tier, uint32_t from, uint32_t n)
{
  uint32_t least = from;
  for (uint32_t i = from + 1; i < n; i++)
    if (tier->candidate[i].value < tier->candidate[least].value)
      least = i;
  struct candidate chosen = tier->candidate[least];
  for (uint32_t i = least; i > from; i--)
    tier->candidate[i] = tier->candidate[i - 1];
  tier->candidate[from] = chosen;
}

/* Chooses victims, into candidate[0 .. returned), until `bytes` in `entries` more entries fit, or as far as
 * it goes. */
static uint32_t victims_choose(const struct tier *tier, uint64_t bytes, uint32_t entries, int64_t now_ns,
                               uint64_t *freed_bytes)
{
  uint32_t n = 0, victims = 0, walk = tier->oldest;
  *freed_bytes = 0;
  if (room_after(tier, bytes, entries, 0, 0))
    return 0;
  if (!tier->policy->recency)
    n = candidates_list(tier, now_ns);
  while (victims < tier->evictable && !room_after(tier, bytes, entries, *freed_bytes, victims)) {
    if (tier->policy->recency) {
      while (!slot_evictable(&tier->slot[walk]))
        walk = tier->slot[walk].next;
      tier->candidate[victims] =
          (struct candidate){.value = slot_value(tier, &tier->slot[walk], now_ns), .slot = walk};
      walk = tier->slot[walk].next;
    } else {
      candidate_select(tier, victims, n);
    }
    *freed_bytes += tier->slot[tier->candidate[victims].slot].entry.bytes;
    victims++;
  }
  return victims;
}

static void slot_evict(struct tier *tier, struct slot *slot, double value)
{
  struct tier_entry victim = slot->entry;
  slot_leave(tier, slot);
  tier->leaving = (uint32_t)(slot - tier->slot);
  if (tier->evicted)
    tier->evicted(tier->context, &victim, value);
  place_give(tier, tier->leaving);
}

/* Evicts until `bytes` in `entries` more entries fit; if that cannot be, evicts nothing (FALSE), or, to
 * shrink, all. */
static gboolean room_make(struct tier *tier, uint64_t bytes, uint32_t entries, gboolean shrink)
{
  uint64_t freed_bytes;
  gboolean possible = room_after(tier, bytes, entries, tier->evictable_bytes, tier->evictable);
  if (!possible && !shrink)
    return FALSE;
  uint32_t victims = victims_choose(tier, bytes, entries, tier->now_ns, &freed_bytes);
  for (uint32_t i = 0; i < victims; i++)
    slot_evict(tier, &tier->slot[tier->candidate[i].slot], tier->candidate[i].value);
  return possible;
}

/* --- the interface --- */

enum tier_state tier_state(const struct tier *tier, uint32_t model)
{
  const struct slot *slot = slot_find(tier, model);
  return slot ? slot->state : TIER_ABSENT;
}

gboolean tier_can_reserve(const struct tier *tier, uint64_t bytes, uint64_t *evicted_bytes)
{
  uint64_t freed_bytes = 0;
  gboolean possible = room_after(tier, bytes, 1, tier->evictable_bytes, tier->evictable);
  if (possible && evicted_bytes)
    victims_choose(tier, bytes, 1, tier->now_ns, &freed_bytes);
  if (evicted_bytes)
    *evicted_bytes = freed_bytes;
  return possible;
}

gboolean tier_reserve(struct tier *tier, uint32_t model, uint64_t bytes, double reload_ns, int64_t now_ns)
{
  g_return_val_if_fail(model < tier->models, FALSE);
  clock_advance(tier, now_ns);
  if (slot_find(tier, model) || !room_make(tier, bytes, 1, FALSE))
    return FALSE;
  uint32_t index = slot_take(tier);
  tier->slot[index] = (struct slot){
      .entry = {.model = model, .bytes = bytes, .last_use_ns = tier->now_ns, .reload_ns = reload_ns},
      .state = TIER_FILLING,
  };
  slot_enter(tier, index);
  if (tier->arena)
    room_take(tier, bytes, &tier->place[index]);
  return TRUE;
}

void tier_ready(struct tier *tier, uint32_t model)
{
  struct slot *slot = slot_find(tier, model);
  g_return_if_fail(slot != NULL);
  if (slot->state == TIER_READY)
    return;
  slot->state = TIER_READY;
  if (slot->pins)
    return;
  slot_account_evictable(tier, slot, TRUE);
  if (tier->used > tier->capacity)
    room_make(tier, 0, 0, TRUE);
}

void tier_touch(struct tier *tier, uint32_t model, int64_t now_ns)
{
  g_return_if_fail(model < tier->models);
  clock_advance(tier, now_ns);
  if (tier->popularity)
    popularity_use(tier->popularity, model, tier->now_ns);
  struct slot *slot = slot_find(tier, model);
  if (!slot)
    return;
  slot->entry.uses++;
  if (slot->entry.last_use_ns == tier->now_ns)
    return;
  slot->entry.last_use_ns = tier->now_ns;
  slot_reorder(tier, tier->slot_of[model]);
}

void tier_pin(struct tier *tier, uint32_t model)
{
  struct slot *slot = slot_find(tier, model);
  g_return_if_fail(slot != NULL && slot->pins < UINT32_MAX);
  if (slot_evictable(slot))
    slot_account_evictable(tier, slot, FALSE);
  slot->pins++;
}

void tier_unpin(struct tier *tier, uint32_t model)
{
  struct slot *slot = slot_find(tier, model);
  g_return_if_fail(slot != NULL && slot->pins > 0);
  slot->pins--;
  if (!slot_evictable(slot))
    return;
  slot_account_evictable(tier, slot, TRUE);
  if (tier->used > tier->capacity)
    room_make(tier, 0, 0, TRUE);
}

uint32_t tier_pins(const struct tier *tier, uint32_t model)
{
  const struct slot *slot = slot_find(tier, model);
  return slot ? slot->pins : 0;
}

void tier_remove(struct tier *tier, uint32_t model)
{
  struct slot *slot = slot_find(tier, model);
  g_return_if_fail(slot != NULL && slot->pins == 0);
  slot_leave(tier, slot);
  place_give(tier, (uint32_t)(slot - tier->slot));
}

void tier_set_capacity(struct tier *tier, uint64_t capacity_bytes, int64_t now_ns)
{
  clock_advance(tier, now_ns);
  tier->capacity = capacity_bytes;
  if (tier->used > tier->capacity)
    room_make(tier, 0, 0, TRUE);
  if (!tier->arena)
    return;
  uint64_t needs = tier_memory_bytes(capacity_bytes, tier->models_max, tier->models, tier->smallest);
  if (needs > arena_size(tier->arena))
    arena_grow(tier->arena, needs - arena_size(tier->arena));
}

gboolean tier_hold(struct tier *tier, uint64_t bytes, int64_t now_ns)
{
  clock_advance(tier, now_ns);
  g_return_val_if_fail(!tier->arena || tier->held == 0, FALSE);
  if (!room_make(tier, bytes, 0, FALSE))
    return FALSE;
  tier->used += bytes;
  tier->held += bytes;
  if (tier->arena)
    room_take(tier, bytes, &tier->held_place);
  return TRUE;
}

void tier_release(struct tier *tier, uint64_t bytes)
{
  g_return_if_fail(bytes <= tier->held && (!tier->arena || bytes == tier->held));
  tier->used -= bytes;
  tier->held -= bytes;
  if (tier->arena)
    arena_give(tier->arena, &tier->held_place);
}

uint64_t tier_used(const struct tier *tier)
{
  return tier->used;
}

uint64_t tier_capacity(const struct tier *tier)
{
  return tier->capacity;
}

uint32_t tier_count(const struct tier *tier)
{
  return tier->count;
}

uint32_t tier_victim(const struct tier *tier, int64_t now_ns)
{
  uint32_t best = NO_SLOT;
  double least = 0;
  for (uint32_t i = tier->oldest; i != NO_SLOT; i = tier->slot[i].next) {
    if (!slot_evictable(&tier->slot[i]))
      continue;
    if (tier->policy->recency)
      return tier->slot[i].entry.model;
    double value = slot_value(tier, &tier->slot[i], now_ns);
    if (best == NO_SLOT || value < least) {
      best = i;
      least = value;
    }
  }
  return best == NO_SLOT ? UINT32_MAX : tier->slot[best].entry.model;
}
