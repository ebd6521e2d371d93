/* Inside of a tier: its entries in slots, in order of use, and the account of bytes. Shared by tier.c and
 * tier_slots.c.
 *
 * Entries lie in a slab of 64-byte slots; by model there are only the 4 bytes of its slot (and a popularity
 * where the policy counts). One list threads the entries in order of (last use, model id), which is the order
 * of eviction of a recency policy and the tie order of the others. Places lie apart: decisions never read
 * them. */
#ifndef DM_TIER_PART_H
#define DM_TIER_PART_H

#include "core/arena.h"
#include "core/popularity.h"
#include "core/tier.h"

#define NO_SLOT UINT32_MAX

struct slot {
  struct tier_entry entry;
  uint32_t prev, next; /* list; `next` also threads the free slots */
  uint32_t pins;
  enum tier_state state;
};

/* A ready, unpinned entry with its value, while victims are chosen. */
struct candidate {
  double value;
  uint32_t slot;
};

struct tier {
  uint64_t capacity, used, held;
  uint64_t evictable_bytes; /* bytes of the ready, unpinned entries */
  uint32_t evictable;       /* and their number */
  uint32_t count, models_max, models;
  const struct tier_policy *policy;
  tier_evicted evicted;
  void *context;
  int64_t now_ns; /* latest time told */
  struct popularity *popularity;
  struct slot *slot;
  struct candidate *candidate; /* scratch, as long as slot */
  struct ranges *place;        /* of each slot, where the tier has places; its memory stays with the slot */
  struct ranges held_place;
  struct arena *arena; /* NULL: no places */
  uint64_t smallest;   /* bytes of the smallest entry that takes room */
  uint32_t leaving;    /* slot of the victim that the callback is told of */
  uint32_t slots, free_slot;
  uint32_t oldest, youngest;
  uint32_t slot_of[]; /* by model */
};

/* A free slot, which the slab grows for if needed: its contents are to be set before slot_enter. */
uint32_t slot_take(struct tier *tier);
/* Enters a filled slot into account and list. */
void slot_enter(struct tier *tier, uint32_t index);
/* Takes an entry out of account and list; its slot is free, its contents still readable until the next
 * slot_take. */
void slot_leave(struct tier *tier, struct slot *slot);
/* Puts an entry where its last use, just changed, belongs. */
void slot_reorder(struct tier *tier, uint32_t index);
/* Books slot as evictable or no longer. */
void slot_account_evictable(struct tier *tier, const struct slot *slot, gboolean evictable);

/* NULL: the model is absent. */
static inline struct slot *slot_find(const struct tier *tier, uint32_t model)
{
  return model < tier->models && tier->slot_of[model] != NO_SLOT ? &tier->slot[tier->slot_of[model]] : NULL;
}

static inline gboolean slot_evictable(const struct slot *slot)
{
  return slot->state == TIER_READY && slot->pins == 0;
}

#endif
