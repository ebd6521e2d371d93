/* Reassembly of segments; see srd_reassembly.h. */
#include "backend_real/srd_reassembly.h"

#include <string.h>

#include "backend_real/transport.h"

#define SLOT_BITS 16 /* of an id; the others count */

struct slot {
  uint64_t id; /* 0: free */
  struct reassembly_read read;
  uint32_t missing; /* segments */
  uint32_t next;    /* of the free ones */
};

struct reassembly {
  struct slot *slot;
  uint64_t *came; /* words of each slot, a bit a segment */
  uint32_t slots, words;
  uint32_t free;
  uint64_t count; /* of reads opened */
};

struct reassembly *reassembly_new(uint32_t reads, uint32_t segment_least)
{
  struct reassembly *r = g_new0(struct reassembly, 1);
  r->slots = reads;
  r->words = (READ_BYTES_MAX / segment_least + 1 + 63) / 64;
  r->slot = g_new0(struct slot, reads);
  r->came = g_new0(uint64_t, (size_t)reads * r->words);
  for (uint32_t i = 0; i < reads; i++)
    r->slot[i].next = i + 1;
  return r;
}

void reassembly_free(struct reassembly *r)
{
  if (!r)
    return;
  g_free(r->slot);
  g_free(r->came);
  g_free(r);
}

uint64_t reassembly_open(struct reassembly *r, const struct reassembly_read *read)
{
  uint32_t index = r->free;
  struct slot *slot = &r->slot[index];
  r->free = slot->next;
  *slot = (struct slot){
      .id = ++r->count << SLOT_BITS | index,
      .read = *read,
      .missing = (read->bytes - 1) / read->segment + 1,
  };
  memset(r->came + (size_t)index * r->words, 0, r->words * sizeof *r->came);
  return slot->id;
}

static struct slot *find_slot(const struct reassembly *r, uint32_t peer, uint64_t id)
{
  uint32_t index = id & ((1U << SLOT_BITS) - 1);
  if (id == 0 || index >= r->slots || r->slot[index].id != id || r->slot[index].read.peer != peer)
    return NULL;
  return &r->slot[index];
}

static uint64_t close_slot(struct reassembly *r, struct slot *slot)
{
  slot->id = 0;
  slot->next = r->free;
  r->free = slot - r->slot;
  return slot->read.tag;
}

/* Marks it; FALSE: it was. */
static gboolean mark(struct reassembly *r, const struct slot *slot, uint32_t number)
{
  uint64_t *word = r->came + (size_t)(slot - r->slot) * r->words + number / 64;
  uint64_t bit = (uint64_t)1 << number % 64;
  if (*word & bit)
    return FALSE;
  *word |= bit;
  return TRUE;
}

enum segment_fate reassembly_take(struct reassembly *r, uint32_t peer, uint64_t id, uint32_t at,
                                  const uint8_t *payload, uint32_t bytes, uint64_t *tag)
{
  struct slot *slot = find_slot(r, peer, id);
  if (!slot)
    return SEGMENT_UNKNOWN;
  const struct reassembly_read *read = &slot->read;
  if (at >= read->bytes || at % read->segment != 0 || bytes != MIN(read->segment, read->bytes - at))
    return SEGMENT_WRONG;
  if (!mark(r, slot, at / read->segment))
    return SEGMENT_TWICE;
  memcpy(read->place + at, payload, bytes);
  if (--slot->missing > 0)
    return SEGMENT_STORED;
  *tag = close_slot(r, slot);
  return SEGMENT_LAST;
}

gboolean reassembly_refuse(struct reassembly *r, uint32_t peer, uint64_t id, uint64_t *tag)
{
  struct slot *slot = find_slot(r, peer, id);
  if (!slot)
    return FALSE;
  *tag = close_slot(r, slot);
  return TRUE;
}

gboolean reassembly_drop(struct reassembly *r, uint32_t peer, uint64_t *tag)
{
  for (uint32_t i = 0; i < r->slots; i++)
    if (r->slot[i].id != 0 && r->slot[i].read.peer == peer) {
      *tag = close_slot(r, &r->slot[i]);
      return TRUE;
    }
  return FALSE;
}
