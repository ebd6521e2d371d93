/* Messages: what is decoded is within its bounds, and encodes to the bytes that it came from. */
#include <stdint.h>
#include <string.h>

#include "core/messages.h"
#include "core/tier.h"
#include "core/world.h"

/* Small, so that mutations fall on both sides of each. */
static const uint32_t models = 6, gpus = 4, memory_servers = 3;

#define CHECK_ANY(value)            ((void)(value))
#define CHECK_durations(value)      g_assert((value) >= -1 && (value) <= MESSAGE_DURATION_MAX)
#define CHECK_models(value)         g_assert((value) < models)
#define CHECK_gpus(value)           g_assert((value) < gpus)
#define CHECK_gpus_or_none(value)   g_assert((value) < gpus || (value) == NO_INDEX)
#define CHECK_memory_servers(value) g_assert((value) < memory_servers)
#define CHECK_outcomes(value)       g_assert((value) < OUTCOME_COUNT)
#define CHECK_founds(value)         g_assert((value) < FOUND_COUNT)
#define CHECK_states(value)         g_assert((value) <= TIER_READY)
#define CHECK_kinds(value)          g_assert((value) <= ACTOR_MEMORY_SERVER)

static void check_bounds(const struct message *message)
{
  switch (message->type) {
#define F(type, field, bound) CHECK_##bound(m->field);
#define M(TYPE, name, fields)                                                                                \
  case MESSAGE_##TYPE: {                                                                                     \
    const struct message_##name *m = &message->name;                                                         \
    fields break;                                                                                            \
  }
    MESSAGE_TABLE(M)
#undef M
#undef F
  case MESSAGE_TYPES:
    g_assert_not_reached();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct message_limits limits;
  struct message message;
  uint8_t again[MESSAGE_BYTES_MAX];
  message_limits_init(&limits, models, gpus, memory_servers);
  if (!message_decode(data, size, &limits, &message))
    return 0;
  check_bounds(&message);
  g_assert(message_encode(&message, again) == size);
  g_assert(memcmp(again, data, size) == 0);
  return 0;
}
