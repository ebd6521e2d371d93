/* What a verbs reader knows of one shelf's regions, during one attempt: which bytes of which model, where the
 * shelf's NICs have them.
 *
 * A region that the shelf takes away is found no more, but lives on while reads use it; the shelf waits for
 * their end. */
#ifndef DM_TRANSPORT_VERBS_KNOWN_H
#define DM_TRANSPORT_VERBS_KNOWN_H

#include "backend_real/transport_verbs_letter.h"
#include "backend_real/transport_verbs_spans.h"

#define KNOWN_MAX (1U << 20) /* regions of one shelf */

struct known_table;

/* One region. */
struct known {
  struct span span; /* must be first */
  struct known_table *table;
  uint32_t uses;
  gboolean gone;
  struct {
    uint64_t address;
    uint32_t key;
  } rail[]; /* [rails] of the shelf */
};

struct known_table *known_table_new(uint32_t rails);
/* Nothing is known any more; the table goes when nothing is used any more. NULL: nothing. */
void known_table_close(struct known_table *table);
uint32_t known_rails(const struct known_table *table);
/* What one entry of a letter says. What it overlaps goes. FALSE: too many regions, and it was not taken. */
gboolean known_apply(struct known_table *table, const struct verbs_region *entry);
/* The region that has the byte, or NULL. */
struct known *known_find(const struct known_table *table, uint32_t model, uint64_t offset);
/* All of the bytes are known. */
gboolean known_covers(const struct known_table *table, uint32_t model, uint64_t offset, uint64_t bytes);
/* Regions that were taken away and are still used. */
uint32_t known_leaving(const struct known_table *table);

/* Between the two a region's address and keys stay as they are. */
void known_use(struct known *known);
void known_done(struct known *known);

#endif
