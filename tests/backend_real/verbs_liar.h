/* A reader that speaks to a verbs shelf by itself, letter by letter and read by read, so that it can do what
 * no honest reader would. */
#ifndef DM_TEST_VERBS_LIAR_H
#define DM_TEST_VERBS_LIAR_H

#include "backend_real/transport_verbs_letter.h"
#include "backend_real/verbs_queue.h"
#include "transport_lab.h"

#define LIAR        ACTOR(ACTOR_GPU_SERVER, 7)
#define LIAR_MEMORY (1U << 20)

struct liar {
  struct lab *lab;
  struct ticket_secret secret;
  uint64_t attempt;
  struct memory memory;
  struct verbs_end *end;
  struct verbs_line *line;    /* one */
  GArray *regions;            /* of struct verbs_region, as told */
  struct verbs_letter answer; /* the last but REGIONS */
};

/* It is admitted. */
struct liar *liar_new(struct lab *lab);
void liar_free(struct liar *liar);
/* A new line and an OPEN letter with this attempt; TRUE: it was accepted, and is connected. */
gboolean liar_open(struct liar *liar, uint64_t attempt);
/* The OPEN letter that liar_open would send. */
GByteArray *liar_letter(struct liar *liar, uint64_t attempt);
/* Delivers a letter of its own, and takes what comes back. */
void liar_post(struct liar *liar, const GByteArray *letter);
/* The region that holds the byte, as told; fails the test where there is none. */
const struct verbs_region *liar_region(const struct liar *liar, uint32_t model, uint64_t offset);
/* One read to the begin of its memory. TRUE: it ended well. */
gboolean liar_read(struct liar *liar, uint64_t address, uint32_t key, uint32_t bytes);
/* One write of its memory's begin, past all that the transport can do. TRUE: it ended well. */
gboolean liar_write(struct liar *liar, uint64_t address, uint32_t key, uint32_t bytes);

#endif
