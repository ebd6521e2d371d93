/* The tables of what passes the seam, its writer, and the reader of inputs; see seam_form.h. */
#include "harness/seam_form.h"

#include "harness/seam_fields.h"

/* --- tables
 * ---------------------------------------------------------------------------------------------------------*/

#define FIELD(type, kind, field)                                                                             \
  {                                                                                                          \
#field, SEAM_##kind, offsetof(struct type, field)                                                        \
  }
#define END                                                                                                  \
  {                                                                                                          \
    NULL, SEAM_U32, 0                                                                                        \
  }

/* Enums and gbooleans are written as the u32 that they are. */
G_STATIC_ASSERT(sizeof(enum load_source) == 4 && sizeof(enum op_status) == 4 && sizeof(gboolean) == 4);
G_STATIC_ASSERT(sizeof(enum record_kind) == 4 && sizeof(enum record_reason) == 4);

static const struct seam_field nothing[] = {END};
static const struct seam_field mail[] = {FIELD(seam_mail, ACTOR, peer), FIELD(seam_mail, LETTER, message),
                                         END};
static const struct seam_field tag[] = {FIELD(seam_tag, U64, tag), END};
static const struct seam_field peer[] = {FIELD(seam_peer, ACTOR, peer), END};
static const struct seam_field timer[] = {FIELD(seam_timer, I64, delay_ns), FIELD(seam_timer, U64, tag), END};

static const struct seam_field completion[] = {FIELD(completion, U64, tag),    FIELD(completion, U32, status),
                                               FIELD(completion, U64, bytes),  FIELD(completion, U64, steps),
                                               FIELD(completion, U32, groups), END};

static const struct seam_field fetch[] = {
    FIELD(fetch_spec, U32, model),      FIELD(fetch_spec, U32, source),
    FIELD(fetch_spec, U32, gpu),        FIELD(fetch_spec, U32, first_group),
    FIELD(fetch_spec, U32, sequential), FIELD(fetch_spec, U64, window_bytes),
    FIELD(fetch_spec, U64, ring_bytes), FIELD(fetch_spec, U64, request),
    FIELD(fetch_spec, U64, tag),        FIELD(fetch_spec, SERVERS, server),
    FIELD(fetch_spec, RANGES, host),    FIELD(fetch_spec, RANGES, device),
    FIELD(fetch_spec, PLAN, plan),      END};

static const struct seam_field copy[] = {FIELD(copy_spec, U32, gpu),
                                         FIELD(copy_spec, U32, lane),
                                         FIELD(copy_spec, U32, model),
                                         FIELD(copy_spec, U32, group),
                                         FIELD(copy_spec, U64, offset),
                                         FIELD(copy_spec, U64, bytes),
                                         FIELD(copy_spec, U64, ring_bytes),
                                         FIELD(copy_spec, U32, to_host),
                                         FIELD(copy_spec, U32, pageable),
                                         FIELD(copy_spec, REAL, extra_ns),
                                         FIELD(copy_spec, U64, after_fetch),
                                         FIELD(copy_spec, U64, after),
                                         FIELD(copy_spec, U64, request),
                                         FIELD(copy_spec, U64, tag),
                                         FIELD(copy_spec, RANGES, host),
                                         FIELD(copy_spec, RANGES, device),
                                         END};

static const struct seam_field compute[] = {FIELD(compute_spec, U32, gpu),
                                            FIELD(compute_spec, U32, stream),
                                            FIELD(compute_spec, U32, model),
                                            FIELD(compute_spec, U32, group),
                                            FIELD(compute_spec, U64, offset),
                                            FIELD(compute_spec, U64, bytes),
                                            FIELD(compute_spec, REAL, compute_ns),
                                            FIELD(compute_spec, U32, layers),
                                            FIELD(compute_spec, U32, loaded),
                                            FIELD(compute_spec, U64, after),
                                            FIELD(compute_spec, U64, after_fetch),
                                            FIELD(compute_spec, U64, request),
                                            FIELD(compute_spec, U64, tag),
                                            FIELD(compute_spec, U64, steps),
                                            FIELD(compute_spec, RANGES, device),
                                            FIELD(compute_spec, LAYERS, layer_ns),
                                            END};

static const struct seam_field place[] = {FIELD(seam_place, U32, model),    FIELD(seam_place, U64, offset),
                                          FIELD(seam_place, U64, bytes),    FIELD(seam_place, U32, gpu),
                                          FIELD(seam_place, RANGES, place), END};

static const struct seam_field record[] = {FIELD(record, U32, kind),    FIELD(record, U32, reason),
                                           FIELD(record, I64, time_ns), FIELD(record, U64, request),
                                           FIELD(record, U32, model),   FIELD(record, U32, server),
                                           FIELD(record, U32, gpu),     FIELD(record, U32, group),
                                           FIELD(record, U32, source),  FIELD(record, I64, a),
                                           FIELD(record, I64, b),       FIELD(record, I64, c),
                                           FIELD(record, I64, d),       END};

const struct seam_field *const seam_fields[SEAM_KINDS] = {
    [SEAM_START] = nothing,  [SEAM_MESSAGE] = mail, [SEAM_TIMER_DUE] = tag,   [SEAM_COMPLETION] = completion,
    [SEAM_PEER_LOST] = peer, [SEAM_SEND] = mail,    [SEAM_TIMER] = timer,     [SEAM_TIMER_CANCEL] = tag,
    [SEAM_FETCH] = fetch,    [SEAM_COPY] = copy,    [SEAM_COMPUTE] = compute, [SEAM_CANCEL] = tag,
    [SEAM_FILL] = place,     [SEAM_SERVE] = place,  [SEAM_RECORD] = record,
};

const char *seam_name(enum seam_kind kind)
{
  static const char *const names[] = {
#define X(kind, name, type) name,
      SEAM_KINDS_TABLE(X)
#undef X
  };
  return (unsigned)kind < SEAM_KINDS ? names[kind] : "?";
}

/* --- writing
 * --------------------------------------------------------------------------------------------------------*/

/* How many and which; NULL is told from none. */
static void write_ranges(struct octets *out, const struct ranges *ranges)
{
  octets_number(out, ranges ? ranges->count + 1ULL : 0);
  for (uint32_t i = 0; ranges && i < ranges->count; i++) {
    octets_number(out, ranges->range[i].offset);
    octets_number(out, ranges->range[i].length);
  }
}

static void write_letter(struct octets *out, const struct message *message)
{
  uint8_t bytes[MESSAGE_BYTES_MAX];
  size_t size = message_encode(message, bytes);
  octets_number(out, size);
  octets_bytes(out, bytes, size);
}

/* As a string of bytes, so that readers may skip it: its length is known at the end, and written in five
 * bytes. */
static void patch_size(struct octets *out, size_t from)
{
  size_t size = out->size - from - 5;
  for (unsigned i = 0; i < 5; i++)
    out->data[from + i] = (uint8_t)((size >> (7 * i) & 0x7f) | (i < 4 ? 0x80 : 0));
}

static void write_plan(struct octets *out, const struct fetch_plan *plan)
{
  size_t from = out->size;
  octets_reserve(out, 5);
  out->size += 5;
  octets_number(out, plan->groups);
  octets_number(out, plan->streams);
  octets_number(out, plan->total_bytes);
  for (uint32_t s = 0; s < plan->streams; s++)
    octets_number(out, plan->slot[s]);
  for (uint32_t g = 0; g < plan->groups; g++) {
    octets_number(out, plan->group_offset[g]);
    octets_number(out, plan->group_bytes[g]);
    for (uint32_t cell = g * plan->streams; cell < (g + 1) * plan->streams; cell++) {
      octets_number(out, plan->bytes[cell]);
      octets_number(out, plan->first_piece[cell + 1] - plan->first_piece[cell]);
      for (uint32_t p = plan->first_piece[cell]; p < plan->first_piece[cell + 1]; p++) {
        octets_number(out, plan->piece[p].offset);
        octets_number(out, plan->piece[p].length);
      }
    }
  }
  patch_size(out, from);
}

static void write_servers(struct octets *out, const struct fetch_spec *spec)
{
  octets_number(out, spec->plan->streams);
  for (uint32_t s = 0; s < spec->plan->streams; s++)
    octets_number(out, spec->server[s]);
}

static void write_layers(struct octets *out, const struct compute_spec *spec)
{
  octets_number(out, spec->layer_ns ? spec->layers : 0);
  for (uint32_t i = 0; spec->layer_ns && i < spec->layers; i++)
    octets_real(out, spec->layer_ns[i]);
}

void seam_write(struct octets *out, enum seam_kind kind, const void *what)
{
  for (const struct seam_field *f = seam_fields[kind]; f->name; f++) {
    const void *at = (const char *)what + f->offset;
    switch (f->kind) {
    case SEAM_U32:
    case SEAM_ACTOR:
      octets_number(out, *(const uint32_t *)at);
      break;
    case SEAM_U64:
      octets_number(out, *(const uint64_t *)at);
      break;
    case SEAM_I64:
      octets_signed(out, *(const int64_t *)at);
      break;
    case SEAM_REAL:
      octets_real(out, *(const double *)at);
      break;
    case SEAM_RANGES:
      write_ranges(out, *(const struct ranges *const *)at);
      break;
    case SEAM_LETTER:
      write_letter(out, *(const struct message *const *)at);
      break;
    case SEAM_PLAN:
      write_plan(out, *(const struct fetch_plan *const *)at);
      break;
    case SEAM_SERVERS:
      write_servers(out, what);
      break;
    case SEAM_LAYERS:
      write_layers(out, what);
      break;
    }
  }
}

/* --- reading
 * --------------------------------------------------------------------------------------------------------*/

static gboolean read_letter(struct octets_view *v, const struct message_limits *limits,
                            struct message *message)
{
  uint64_t size = view_number(v);
  const uint8_t *bytes = view_bytes(v, size);
  return bytes && message_decode(bytes, (size_t)size, limits, message);
}

/* Where an input's fields go: the tables' structs begin as what they are read into does. Inputs have letters,
 * u64, u32 and actors alone. */
G_STATIC_ASSERT(offsetof(struct seam_mail, peer) == 0 && offsetof(struct seam_peer, peer) == 0);
G_STATIC_ASSERT(offsetof(struct seam_tag, tag) == 0 && offsetof(struct completion, tag) == 0);

static void *field_of(struct seam_input *input, const struct seam_field *f)
{
  gboolean has_peer = input->kind == SEAM_MESSAGE || input->kind == SEAM_PEER_LOST;
  return has_peer ? (char *)&input->peer : (char *)&input->completion + f->offset;
}

gboolean seam_read_input(enum seam_kind kind, const uint8_t *data, size_t size,
                         const struct message_limits *limits, struct seam_input *input)
{
  struct octets_view v = octets_view_of(data, size);
  gboolean good = seam_is_input(kind);
  *input = (struct seam_input){.kind = kind};
  for (const struct seam_field *f = good ? seam_fields[kind] : nothing; f->name; f++) {
    if (f->kind == SEAM_LETTER)
      good = good && read_letter(&v, limits, &input->message);
    else if (f->kind == SEAM_U64)
      *(uint64_t *)field_of(input, f) = view_number(&v);
    else
      *(uint32_t *)field_of(input, f) = view_small(&v);
  }
  return good && v.good && v.at == v.end && (uint32_t)input->completion.status <= OP_CANCELLED;
}
