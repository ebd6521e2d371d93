/* Encoder and decoder of messages, from the table in messages.h. */
#include <string.h>
#include "core/messages.h"
#include "core/tier.h"

#define STATES      (TIER_READY + 1)
#define ACTOR_KINDS 4

void message_limits_init(struct message_limits *limits, uint32_t models, uint32_t gpus,
                         uint32_t memory_servers)
{
  *limits = (struct message_limits){.models = models,
                                    .gpus = gpus,
                                    .memory_servers = memory_servers,
                                    .outcomes = OUTCOME_COUNT,
                                    .founds = FOUND_COUNT,
                                    .states = STATES,
                                    .kinds = ACTOR_KINDS};
}

static uint8_t *put(uint8_t *at, uint64_t value, size_t size)
{
  for (size_t i = 0; i < size; i++)
    at[i] = (uint8_t)(value >> (8 * i));
  return at + size;
}

static uint64_t get(const uint8_t *at, size_t size)
{
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++)
    value |= (uint64_t)at[i] << (8 * i);
  return value;
}

size_t message_encode(const struct message *message, uint8_t out[MESSAGE_BYTES_MAX])
{
  uint8_t *at = put(out, message->type, 4);
  switch (message->type) {
#define F(type, field, bound) at = put(at, (uint64_t)m->field, sizeof(message_##type));
#define M(TYPE, name, fields)                                                                                \
  case MESSAGE_##TYPE: {                                                                                     \
    const struct message_##name *m = &message->name;                                                         \
    fields break;                                                                                            \
  }
    MESSAGE_TABLE(M)
#undef M
#undef F
  case MESSAGE_TYPES:
    break;
  }
  return (size_t)(at - out);
}

size_t message_size(uint32_t type)
{
  switch (type) {
#define F(type, field, bound) +sizeof(message_##type)
#define M(TYPE, name, fields)                                                                                \
  case MESSAGE_##TYPE: {                                                                                     \
    _Static_assert(4 fields <= MESSAGE_BYTES_MAX, "message too large");                                      \
    return 4 fields;                                                                                         \
  }
    MESSAGE_TABLE(M)
#undef M
#undef F
  default:
    return 0;
  }
}

#define BOUND_ANY(value)            TRUE
#define BOUND_durations(value)      ((value) >= -1 && (value) <= MESSAGE_DURATION_MAX)
#define BOUND_models(value)         ((value) < limits->models)
#define BOUND_gpus(value)           ((value) < limits->gpus)
#define BOUND_gpus_or_none(value)   ((value) < limits->gpus || (value) == NO_INDEX)
#define BOUND_memory_servers(value) ((value) < limits->memory_servers)
#define BOUND_outcomes(value)       ((value) < limits->outcomes)
#define BOUND_founds(value)         ((value) < limits->founds)
#define BOUND_states(value)         ((value) < limits->states)
#define BOUND_kinds(value)          ((value) < limits->kinds)

gboolean message_decode(const uint8_t *data, size_t size, const struct message_limits *limits,
                        struct message *message)
{
  if (size < 4 || size != message_size((uint32_t)get(data, 4)))
    return FALSE;
  gboolean good = TRUE;
  message->type = (enum message_type)get(data, 4);
  const uint8_t *at = data + 4;
  switch (message->type) {
#define F(type, field, bound)                                                                                \
  m->field = (message_##type)get(at, sizeof(message_##type));                                                \
  at += sizeof(message_##type);                                                                              \
  good &= BOUND_##bound(m->field);
#define M(TYPE, name, fields)                                                                                \
  case MESSAGE_##TYPE: {                                                                                     \
    struct message_##name *m = &message->name;                                                               \
    fields break;                                                                                            \
  }
    MESSAGE_TABLE(M)
#undef M
#undef F
  case MESSAGE_TYPES:
    good = FALSE;
  }
  return good;
}

const char *message_name(enum message_type type)
{
  static const char *const names[] = {
#define M(TYPE, name, fields) #name,
      MESSAGE_TABLE(M)
#undef M
  };
  return type < MESSAGE_TYPES ? names[type] : "?";
}
