/* An arena: the addresses in one memory (a GPU's, a server's pinned host memory) and who has which.
 *
 * Works on offsets, never on the memory itself, so it is the same in both worlds. What is asked for is given
 * in as few ranges as the free space allows: whole where it fits, else cut, so an arena never fails for
 * fragmentation as long as the sum of what is taken, each rounded up to ARENA_ALIGN, fits. Steady use
 * allocates nothing. */
#ifndef DM_ARENA_H
#define DM_ARENA_H

#include <glib.h>
#include "core/units.h"

#define ARENA_ALIGN 4096

struct range {
  uint64_t offset, length; /* bytes; offset is a multiple of ARENA_ALIGN, length too but for the last range */
};

/* Where something lies: its bytes, in order, in these ranges. Zeroed = nowhere; ranges_clear frees it. */
struct ranges {
  struct range *range;
  uint32_t count, room;
};

struct arena;

/* Bytes that an arena needs so that a tier of capacity_bytes in at most `entries` pieces never lacks room. */
uint64_t arena_bytes(uint64_t capacity_bytes, uint64_t entries);
/* Offsets [base, base + bytes), bytes down to whole ARENA_ALIGNs; base is a multiple of ARENA_ALIGN. */
struct arena *arena_new(uint64_t base, uint64_t bytes);
void arena_free(struct arena *arena);
/* Adds bytes at its end. */
void arena_grow(struct arena *arena, uint64_t bytes);
uint64_t arena_size(const struct arena *arena);
/* Takes room for bytes into *ranges (which is empty; its memory is used again). FALSE: too little is free,
 * nothing changed. bytes 0 takes nothing. */
gboolean arena_take(struct arena *arena, uint64_t bytes, struct ranges *ranges);
/* Gives all of it back; *ranges is then empty. */
void arena_give(struct arena *arena, struct ranges *ranges);
void ranges_clear(struct ranges *ranges);

uint64_t ranges_bytes(const struct ranges *ranges);
/* Keeps the first `at` bytes (a multiple of ARENA_ALIGN) and moves what follows to *tail, which is empty. */
void ranges_split(struct ranges *ranges, uint64_t at, struct ranges *tail);
/* The piece of ranges that begins `at` bytes into it and is at most `length` long, in one range: its offset;
 * *piece receives its length (0: there is no such byte). */
uint64_t ranges_piece(const struct ranges *ranges, uint64_t at, uint64_t length, uint64_t *piece);

#endif
