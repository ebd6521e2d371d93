/* Slots of a tier; see tier_part.h. */
#include "core/tier_part.h"

#include <string.h>

#define FIRST_SLOTS 8

static void list_unlink(struct tier *tier, uint32_t index)
{
  struct slot *slot = &tier->slot[index];
  if (slot->prev == NO_SLOT)
    tier->oldest = slot->next;
  else
    tier->slot[slot->prev].next = slot->next;
  if (slot->next == NO_SLOT)
    tier->youngest = slot->prev;
  else
    tier->slot[slot->next].prev = slot->prev;
}

static gboolean used_before(const struct tier_entry *a, const struct tier_entry *b)
{
  return a->last_use_ns != b->last_use_ns ? a->last_use_ns < b->last_use_ns : a->model < b->model;
}

/* Puts an unlinked slot where its last use says: at the young end, but for uses at one same time. */
static void list_insert(struct tier *tier, uint32_t index)
{
  struct slot *slot = &tier->slot[index];
  uint32_t before = tier->youngest;
  while (before != NO_SLOT && used_before(&slot->entry, &tier->slot[before].entry))
    before = tier->slot[before].prev;
  slot->prev = before;
  slot->next = before == NO_SLOT ? tier->oldest : tier->slot[before].next;
  if (slot->prev == NO_SLOT)
    tier->oldest = index;
  else
    tier->slot[slot->prev].next = index;
  if (slot->next == NO_SLOT)
    tier->youngest = index;
  else
    tier->slot[slot->next].prev = index;
}

static void slab_grow(struct tier *tier)
{
  uint32_t slots = tier->slots ? tier->slots * 2 : FIRST_SLOTS;
  tier->slot = g_renew(struct slot, tier->slot, slots);
  tier->candidate = g_renew(struct candidate, tier->candidate, slots);
  if (tier->arena) {
    tier->place = g_renew(struct ranges, tier->place, slots);
    memset(&tier->place[tier->slots], 0, (slots - tier->slots) * sizeof *tier->place);
  }
  for (uint32_t i = slots; i-- > tier->slots;) {
    tier->slot[i].next = tier->free_slot;
    tier->free_slot = i;
  }
  tier->slots = slots;
}

uint32_t slot_take(struct tier *tier)
{
  if (tier->free_slot == NO_SLOT)
    slab_grow(tier);
  uint32_t index = tier->free_slot;
  tier->free_slot = tier->slot[index].next;
  return index;
}

void slot_enter(struct tier *tier, uint32_t index)
{
  const struct tier_entry *entry = &tier->slot[index].entry;
  tier->slot_of[entry->model] = index;
  tier->used += entry->bytes;
  tier->count++;
  list_insert(tier, index);
}

void slot_leave(struct tier *tier, struct slot *slot)
{
  uint32_t index = (uint32_t)(slot - tier->slot);
  if (slot_evictable(slot))
    slot_account_evictable(tier, slot, FALSE);
  list_unlink(tier, index);
  tier->used -= slot->entry.bytes;
  tier->count--;
  tier->slot_of[slot->entry.model] = NO_SLOT;
  slot->next = tier->free_slot;
  tier->free_slot = index;
}

void slot_reorder(struct tier *tier, uint32_t index)
{
  if (tier->slot[index].next == NO_SLOT)
    return;
  list_unlink(tier, index);
  list_insert(tier, index);
}

void slot_account_evictable(struct tier *tier, const struct slot *slot, gboolean evictable)
{
  if (evictable) {
    tier->evictable_bytes += slot->entry.bytes;
    tier->evictable++;
  } else {
    tier->evictable_bytes -= slot->entry.bytes;
    tier->evictable--;
  }
}
