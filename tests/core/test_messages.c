/* Messages: the wire format pinned by hand, every type there and back, and nothing decoded that is cut short,
 * too long, of no known type or out of its bounds. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/messages.h"
#include "core/tier.h"
#include "core/world.h"

enum { MODELS = 1000, GPUS = 8, MEMORY_SERVERS = 5 };

/* What each bound of the table stands for here: a value must be below it; 0 = any value goes. */
#define LIMIT_ANY            0
#define LIMIT_models         MODELS
#define LIMIT_durations      0
#define LIMIT_gpus           GPUS
#define LIMIT_gpus_or_none   GPUS
#define LIMIT_memory_servers MEMORY_SERVERS
#define LIMIT_outcomes       OUTCOME_COUNT
#define LIMIT_founds         FOUND_COUNT
#define LIMIT_states         (TIER_READY + 1)
#define LIMIT_kinds          (ACTOR_MEMORY_SERVER + 1)

/* One field of one type. */
struct field {
  enum message_type type;
  const char *name, *bound;
  size_t offset, size; /* in struct message */
  uint32_t limit;
};

static GArray *list_fields(void)
{
  GArray *list = g_array_new(FALSE, FALSE, sizeof(struct field));
#define F(kind, part, limit_name)                                                                            \
  g_array_append_val(list, ((struct field){type, #part, #limit_name, base + offsetof(message_fields, part),  \
                                           sizeof(message_##kind), LIMIT_##limit_name}));
#define M(TYPE, name, fields)                                                                                \
  {                                                                                                          \
    typedef struct message_##name message_fields;                                                            \
    const enum message_type type = MESSAGE_##TYPE;                                                           \
    const size_t base = offsetof(struct message, name);                                                      \
    fields                                                                                                   \
  }
  MESSAGE_TABLE(M)
#undef M
#undef F
  return list;
}

static uint64_t field_get(const struct message *message, const struct field *field)
{
  uint32_t narrow;
  uint64_t wide;
  const char *at = (const char *)message + field->offset;
  if (field->size == sizeof narrow)
    return memcpy(&narrow, at, sizeof narrow), narrow;
  return memcpy(&wide, at, sizeof wide), wide;
}

static void field_set(struct message *message, const struct field *field, uint64_t value)
{
  uint32_t narrow = (uint32_t)value;
  if (field->size == sizeof narrow)
    memcpy((char *)message + field->offset, &narrow, sizeof narrow);
  else
    memcpy((char *)message + field->offset, &value, sizeof value);
}

static gboolean field_takes_none(const struct field *field)
{
  return strcmp(field->bound, "gpus_or_none") == 0;
}

static gboolean field_is_duration(const struct field *field)
{
  return strcmp(field->bound, "durations") == 0;
}

/* Extremes now and then; within the bound. */
static uint64_t draw_value(GRand *rand, const struct field *field)
{
  uint64_t any = (uint64_t)g_rand_int(rand) << 32 | g_rand_int(rand);
  const uint64_t choice[] = {0, UINT64_MAX, (uint64_t)INT64_MAX, (uint64_t)INT64_MIN, any, any, any, any};
  if (field_takes_none(field) && g_rand_int_range(rand, 0, 4) == 0)
    return NO_INDEX;
  any = choice[g_rand_int_range(rand, 0, G_N_ELEMENTS(choice))];
  if (field_is_duration(field))
    return any == UINT64_MAX ? any : any % (MESSAGE_DURATION_MAX + 1ULL);
  if (field->size == 4)
    any &= UINT32_MAX;
  return field->limit ? any % field->limit : any;
}

static void draw_message(GRand *rand, const GArray *list, enum message_type type, struct message *message)
{
  memset(message, 0x5a, sizeof *message);
  message->type = type;
  for (guint i = 0; i < list->len; i++) {
    const struct field *field = &g_array_index(list, struct field, i);
    if (field->type == type)
      field_set(message, field, draw_value(rand, field));
  }
}

/* From a block of exactly that size, so that the sanitizer sees a read past it. */
static gboolean decode(const uint8_t *data, size_t size, struct message *message)
{
  struct message_limits limits;
  message_limits_init(&limits, MODELS, GPUS, MEMORY_SERVERS);
  uint8_t *exact = malloc(size);
  if (size > 0)
    memcpy(exact, data, size);
  memset(message, 0xa5, sizeof *message);
  gboolean good = message_decode(exact, size, &limits, message);
  free(exact);
  return good;
}

/* Encodes, and takes it back. */
static gboolean survives(const struct message *message, struct message *back)
{
  uint8_t wire[MESSAGE_BYTES_MAX];
  return decode(wire, message_encode(message, wire), back);
}

static void expect_wire(const struct message *message, const uint8_t *wire, size_t size)
{
  uint8_t out[MESSAGE_BYTES_MAX];
  struct message back;
  cr_assert_eq(message_encode(message, out), size);
  cr_assert_arr_eq(out, wire, size);
  cr_assert(decode(wire, size, &back));
}

Test(messages, wire_format_by_hand)
{
  struct message request = {
      .type = MESSAGE_REQUEST,
      .request = {.id = 0x0102030405060708, .model = 999, .slot = NO_INDEX, .service_ns = -1}};
  const uint8_t request_wire[] = {
      0,    0,    0,    0,                            /* type */
      8,    7,    6,    5,    4,    3,    2,    1,    /* id, little-endian */
      0xe7, 3,    0,    0,    0xff, 0xff, 0xff, 0xff, /* model, slot: no padding between */
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  expect_wire(&request, request_wire, sizeof request_wire);
  struct message state = {.type = MESSAGE_MODEL_STATE,
                          .model_state = {.model = 258, .gpu = 7, .state = TIER_READY}};
  const uint8_t state_wire[] = {5, 0, 0, 0, 2, 1, 0, 0, 7, 0, 0, 0, TIER_READY, 0, 0, 0};
  expect_wire(&state, state_wire, sizeof state_wire);
  struct message beat = {.type = MESSAGE_HEARTBEAT, .heartbeat = {.epoch = 0x01000002}};
  const uint8_t beat_wire[] = {8, 0, 0, 0, 2, 0, 0, 1};
  expect_wire(&beat, beat_wire, sizeof beat_wire);
}

Test(messages, every_type_there_and_back)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(41);
  g_autoptr(GArray) list = list_fields();
  for (int round = 0; round < 20000; round++) {
    enum message_type type = (enum message_type)(round % MESSAGE_TYPES);
    struct message message, back;
    uint8_t wire[MESSAGE_BYTES_MAX];
    draw_message(rand, list, type, &message);
    size_t size = message_encode(&message, wire), at = 4;
    cr_assert(decode(wire, size, &back), "%s, round %d", message_name(type), round);
    cr_assert_eq(back.type, type);
    for (guint i = 0; i < list->len; i++) {
      const struct field *field = &g_array_index(list, struct field, i);
      if (field->type != type)
        continue;
      uint64_t value = field_get(&message, field);
      cr_assert_eq(field_get(&back, field), value, "%s.%s", message_name(type), field->name);
      for (size_t b = 0; b < field->size; b++)
        cr_assert_eq(wire[at++], (uint8_t)(value >> 8 * b), "%s.%s byte %zu", message_name(type), field->name,
                     b);
    }
    cr_assert_eq(at, size);
    cr_assert_leq(size, MESSAGE_BYTES_MAX);
  }
}

Test(messages, of_another_size_are_refused)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(42);
  g_autoptr(GArray) list = list_fields();
  for (int type = 0; type < MESSAGE_TYPES; type++) {
    struct message message, back;
    uint8_t wire[2 * MESSAGE_BYTES_MAX] = {0}; /* what follows would be good values */
    draw_message(rand, list, (enum message_type)type, &message);
    size_t right = message_encode(&message, wire);
    for (size_t size = 0; size <= sizeof wire; size++)
      cr_assert_eq(decode(wire, size, &back), size == right, "%s of %zu bytes", message_name(message.type),
                   size);
  }
}

Test(messages, of_no_known_type_are_refused)
{
  const uint32_t types[] = {MESSAGE_TYPES, MESSAGE_TYPES + 1, 0x100,      0x10000,
                            0x1000000,     INT32_MAX,         0x80000000, UINT32_MAX};
  for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
    struct message back;
    uint8_t wire[MESSAGE_BYTES_MAX + 1] = {0};
    for (int b = 0; b < 4; b++)
      wire[b] = (uint8_t)(types[i] >> 8 * b);
    for (size_t size = 0; size <= sizeof wire; size++)
      cr_assert_not(decode(wire, size, &back), "type %u of %zu bytes", types[i], size);
  }
}

/* Each bounded field alone out of its bounds, in a message that is good otherwise. */
Test(messages, out_of_bounds_are_refused)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(43);
  g_autoptr(GArray) list = list_fields();
  for (guint i = 0; i < list->len; i++) {
    const struct field *field = &g_array_index(list, struct field, i);
    struct message message, back;
    for (int round = 0; round < 200 && field->limit; round++) {
      const uint32_t bad[] = {field->limit, field->limit + 1, NO_INDEX - 1, (uint32_t)INT32_MIN,
                              (uint32_t)g_rand_int_range(rand, (gint32)field->limit, INT32_MAX)};
      draw_message(rand, list, field->type, &message);
      field_set(&message, field, bad[round % G_N_ELEMENTS(bad)]);
      cr_assert_not(survives(&message, &back), "%s.%s = %" G_GUINT64_FORMAT, message_name(field->type),
                    field->name, field_get(&message, field));
      field_set(&message, field, NO_INDEX);
      cr_assert_eq(survives(&message, &back), field_takes_none(field), "%s.%s", message_name(field->type),
                   field->name);
      field_set(&message, field, field->limit - 1);
      cr_assert(survives(&message, &back), "%s.%s", message_name(field->type), field->name);
    }
  }
}

/* The fields that index something, by hand: the table must not lose one of these bounds. */
Test(messages, what_is_bounded)
{
  static const char expected[] =
      "request.model:models answer.outcome:outcomes answer.found:founds dispatch.model:models "
      "dispatch.gpu:gpus "
      "revoke.gpu:gpus done.outcome:outcomes done.found:founds model_state.model:models "
      "model_state.gpu:gpus_or_none model_state.state:states remove.kind:kinds member.index:memory_servers "
      "train.gpu:gpus trained.gpu:gpus ";
  g_autoptr(GArray) list = list_fields();
  g_autoptr(GString) bounded = g_string_new(NULL);
  for (guint i = 0; i < list->len; i++) {
    const struct field *field = &g_array_index(list, struct field, i);
    if (field->limit)
      g_string_append_printf(bounded, "%s.%s:%s ", message_name(field->type), field->name, field->bound);
  }
  cr_assert_str_eq(bounded->str, expected);
}

/* A cluster without models, GPUs or memory servers: no message that names one is good. */
Test(messages, of_an_empty_cluster)
{
  g_autoptr(GRand) rand = g_rand_new_with_seed(44);
  g_autoptr(GArray) list = list_fields();
  struct message_limits none;
  message_limits_init(&none, 0, 0, 0);
  for (int round = 0; round < 50 * MESSAGE_TYPES; round++) {
    struct message message, back;
    uint8_t wire[MESSAGE_BYTES_MAX];
    gboolean names_one = FALSE;
    draw_message(rand, list, (enum message_type)(round % MESSAGE_TYPES), &message);
    for (guint i = 0; i < list->len; i++) {
      const struct field *field = &g_array_index(list, struct field, i);
      gboolean counted = strstr("models gpus gpus_or_none memory_servers", field->bound) != NULL;
      names_one |= field->type == message.type && counted &&
                   !(field_takes_none(field) && field_get(&message, field) == NO_INDEX);
    }
    cr_assert_eq(message_decode(wire, message_encode(&message, wire), &none, &back), !names_one, "%s",
                 message_name(message.type));
  }
}

Test(messages, names_differ)
{
  cr_assert_str_eq(message_name(MESSAGE_REQUEST), "request");
  cr_assert_str_eq(message_name(MESSAGE_JOB), "job");
  cr_assert_str_eq(message_name(MESSAGE_TYPES), "?");
  for (int a = 0; a < MESSAGE_TYPES; a++) {
    for (int b = 0; b < a; b++)
      cr_assert_str_neq(message_name((enum message_type)a), message_name((enum message_type)b));
  }
}

/* What lets messages lie end to end: the type alone gives the size. */
Test(messages, size_by_type)
{
  for (uint32_t type = 0; type < MESSAGE_TYPES; type++) {
    uint8_t out[MESSAGE_BYTES_MAX];
    const struct message message = {.type = (enum message_type)type};
    cr_assert_eq(message_encode(&message, out), message_size(type));
  }
  cr_assert_eq(message_size(MESSAGE_TYPES), 0);
  cr_assert_eq(message_size(UINT32_MAX), 0);
}

Test(messages, durations_are_bounded)
{
  g_autoptr(GArray) list = list_fields();
  g_autoptr(GRand) rand = g_rand_new_with_seed(5);
  const int64_t bad[] = {-2, INT64_MIN, MESSAGE_DURATION_MAX + 1LL, INT64_MAX};
  guint fields = 0;
  for (guint i = 0; i < list->len; i++) {
    const struct field *field = &g_array_index(list, struct field, i);
    if (!field_is_duration(field))
      continue;
    fields++;
    for (guint k = 0; k < G_N_ELEMENTS(bad); k++) {
      struct message message, back;
      draw_message(rand, list, field->type, &message);
      cr_expect(survives(&message, &back));
      field_set(&message, field, (uint64_t)bad[k]);
      cr_expect(!survives(&message, &back), "%s of %s may be %" G_GINT64_FORMAT, field->name,
                message_name(field->type), bad[k]);
    }
  }
  cr_expect_geq(fields, 8);
}
