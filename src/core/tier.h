/* A tier: a bounded set of models in one memory (a GPU's memory, a server's host cache, an SSD), with pins
 * and eviction.
 *
 * Owns the account of bytes: the limits are checked at every change and never exceeded. An entry is FILLING
 * from the reservation until tier_ready, then READY. A pinned or filling entry is never evicted. Victims are
 * taken in the order of the policy (least valuable first), no more than needed, and none at all when the room
 * cannot be made. A bounded tier may also know places: which bytes of its memory each entry has. */
#ifndef DM_TIER_H
#define DM_TIER_H

#include <glib.h>
#include "core/arena.h"

enum tier_state { TIER_ABSENT, TIER_FILLING, TIER_READY };

struct tier;

/* What a policy sees of an entry. */
struct tier_entry {
  uint32_t model;
  uint64_t bytes;
  int64_t last_use_ns;
  uint64_t uses;     /* since it entered */
  double popularity; /* decayed count of uses, kept also while absent (popularity.h); 0 unless the policy
                        counts */
  double reload_ns;  /* time to bring it back, given at tier_reserve */
};

/* A cache policy: the entry with the least value leaves first; ties: longest unused, then lowest model id. */
struct tier_policy {
  const char *name;
  double (*value)(const struct tier_entry *entry, int64_t now_ns);
  gboolean recency; /* value only grows with the last use: the order of use is the order of eviction, nothing
                       is scanned */
  gboolean counts;  /* value reads popularity: the tier keeps it, by model */
};

extern const struct tier_policy tier_policy_lru;                 /* value = - (time unused) */
extern const struct tier_policy tier_policy_weighted;            /* popularity x reload time / size */
const struct tier_policy *tier_policy_by_name(const char *name); /* NULL: none has that name */

/* Called for each victim, after it has left. value: the policy's, for the decision record. Must not change
 * the tier. */
typedef void (*tier_evicted)(void *context, const struct tier_entry *victim, double value);

/* capacity_bytes 0 with unbounded TRUE = no limit; models_max 0 = no limit. models: number of model ids. */
struct tier *tier_new(uint64_t capacity_bytes, gboolean unbounded, uint32_t models_max, uint32_t models,
                      const struct tier_policy *policy, tier_evicted evicted, void *context);
void tier_free(struct tier *tier);

/* Size of the memory that gives a tier of this capacity its places, slack for whole ARENA_ALIGNs included.
 * smallest: bytes of its smallest entry, entries of none apart. */
uint64_t tier_memory_bytes(uint64_t capacity_bytes, uint32_t models_max, uint32_t models, uint64_t smallest);
/* From now on (nothing is in it yet, and it is bounded) entries and what is held have places in the
 * tier_memory_bytes from base on. Then one thing at a time can be held, and is released whole. */
void tier_place_from(struct tier *tier, uint64_t base, uint64_t smallest);
/* NULL: the model is absent, or the tier has no places. Stays true until the tier changes. */
const struct ranges *tier_place(const struct tier *tier, uint32_t model);
const struct ranges *tier_held_place(const struct tier *tier);
/* In the evicted callback: the place that the victim had. */
const struct ranges *tier_victim_place(const struct tier *tier);

enum tier_state tier_state(const struct tier *tier, uint32_t model);
/* Makes room and enters the model as FILLING, unpinned. FALSE: not enough unpinned room, or the model is
 * there already; nothing changed. */
gboolean tier_reserve(struct tier *tier, uint32_t model, uint64_t bytes, double reload_ns, int64_t now_ns);
/* Would tier_reserve of an absent model succeed, and how many bytes would it evict? evicted_bytes may be
 * NULL. Values are those at the latest time that the tier was told. */
gboolean tier_can_reserve(const struct tier *tier, uint64_t bytes, uint64_t *evicted_bytes);
void tier_ready(struct tier *tier, uint32_t model); /* after a shrink may evict, as tier_unpin does */
/* Use of a model: moves it to the young end and counts; of an absent one: counts popularity only. */
void tier_touch(struct tier *tier, uint32_t model, int64_t now_ns);
void tier_pin(struct tier *tier, uint32_t model); /* counted */
void tier_unpin(struct tier *tier, uint32_t model);
uint32_t tier_pins(const struct tier *tier, uint32_t model);
/* Takes an entry out (aborted load, or by decision); not reported to the callback. Must be unpinned. */
void tier_remove(struct tier *tier, uint32_t model);
/* Lowers or raises the limit; evicts what is over. What is pinned stays over the limit only until it is
 * unpinned: then tier_unpin evicts it. A tier with places grows its memory at the end where the limit passes
 * all before: only for a world whose memory is not bounded. */
void tier_set_capacity(struct tier *tier, uint64_t capacity_bytes, int64_t now_ns);
/* Space taken by something that is no model (training state); FALSE if it cannot be had. */
gboolean tier_hold(struct tier *tier, uint64_t bytes, int64_t now_ns);
void tier_release(struct tier *tier, uint64_t bytes);

uint64_t tier_used(const struct tier *tier);     /* entries and what is held */
uint64_t tier_capacity(const struct tier *tier); /* UINT64_MAX if unbounded */
uint32_t tier_count(const struct tier *tier);
/* READY unpinned entry that would leave first, or UINT32_MAX. */
uint32_t tier_victim(const struct tier *tier, int64_t now_ns);

#endif
