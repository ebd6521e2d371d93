/* Reading recordings, a step at a time; see recording.h. */
#include "core/error.h"
#include "harness/recording_block.h"

#define STEP_BYTES_MAX   (256U << 20) /* what one input may lead to: a start that fills every tier */
#define STEP_OUTPUTS_MAX (1U << 24)
#define CLOCK_MAX        (INT64_MAX / 4)

/* An entry, as places in the stream in hand. */
struct entry {
  uint8_t kind;
  size_t at, size;
};

struct recording_reader {
  struct block_reader blocks;
  gboolean at_block; /* blocks has one that is not consumed: it begins the next part */
  gboolean over;     /* of the file's blocks */
  gboolean in_part, ended, cut;
  uint32_t parts;
  char *where;
  struct recording_head head;
  struct octets stream; /* of the part: not yet dropped */
  size_t cursor;        /* the next entry */
  int64_t now;
  gboolean started; /* now is known */
  uint64_t inputs, outputs;
  GArray *entries; /* of struct entry: of the step */
  GArray *output;  /* of struct recorded */
};

struct recording_reader *recording_open(const char *path, GError **error)
{
  struct recording_reader *r = g_new0(struct recording_reader, 1);
  r->entries = g_array_new(FALSE, FALSE, sizeof(struct entry));
  r->output = g_array_new(FALSE, FALSE, sizeof(struct recorded));
  r->where = g_strdup_printf("%s: ", path);
  if (block_reader_open(&r->blocks, path, error))
    return r;
  recording_reader_free(r);
  return NULL;
}

void recording_reader_free(struct recording_reader *r)
{
  if (!r)
    return;
  block_reader_close(&r->blocks);
  recording_head_clear(&r->head);
  g_array_unref(r->entries);
  g_array_unref(r->output);
  g_free(r->stream.data);
  g_free(r->where);
  g_free(r);
}

const char *recording_where(const struct recording_reader *r)
{
  return r->where;
}

gboolean recording_was_cut(const struct recording_reader *r)
{
  return r->cut;
}

static int malformed(const struct recording_reader *r, GError **error, const char *what)
{
  input_error(error, NULL, 0, "%s%s, before byte %" G_GUINT64_FORMAT " of the file", r->where, what,
              r->blocks.offset);
  return -1;
}

/* --- the stream of a part
 * -------------------------------------------------------------------------------------------*/

/* The next block: 1, if there is one. */
static int load(struct recording_reader *r, GError **error)
{
  if (r->at_block)
    return 1;
  int more = r->over ? 0 : block_reader_next(&r->blocks, error);
  r->at_block = more > 0;
  r->over = more == 0;
  return more;
}

/* Appends a block of the part to the stream. 0: the part has no more. */
static int stream_more(struct recording_reader *r, GError **error)
{
  int more = load(r, error);
  if (more <= 0 || r->blocks.flags & RECORDING_BEGINS)
    return MIN(more, 0);
  if (r->stream.size + r->blocks.payload > STEP_BYTES_MAX)
    return malformed(r, error, "expected less than 256 MiB on one input");
  octets_bytes(&r->stream, r->blocks.block + BLOCK_HEADER, r->blocks.payload);
  r->at_block = FALSE;
  return 1;
}

/* 1: the entry at the cursor, which moves past it; 0: the stream ends before or inside of it. */
static int next_entry(struct recording_reader *r, struct entry *entry, GError **error)
{
  for (;;) {
    struct octets_view v = octets_view_of(r->stream.data + r->cursor, r->stream.size - r->cursor);
    const uint8_t *kind = r->stream.size > r->cursor ? view_bytes(&v, 1) : NULL;
    uint64_t size = kind ? view_number(&v) : 0;
    if (size > STEP_BYTES_MAX)
      return malformed(r, error, "expected an entry of less than 256 MiB");
    if (kind && view_bytes(&v, size)) {
      size_t end = (size_t)(v.at - r->stream.data);
      *entry = (struct entry){*kind, end - (size_t)size, (size_t)size};
      r->cursor = end;
      return 1;
    }
    int more = stream_more(r, error);
    if (more <= 0)
      return more;
  }
}

static int peek_entry(struct recording_reader *r, struct entry *entry, GError **error)
{
  size_t cursor = r->cursor;
  int more = next_entry(r, entry, error);
  r->cursor = cursor;
  return more;
}

/* Forgets what was read, once it is worth the move. */
static void stream_drop(struct recording_reader *r)
{
  if (r->cursor < RECORDING_BLOCK && r->cursor < r->stream.size)
    return;
  memmove(r->stream.data, r->stream.data + r->cursor, r->stream.size - r->cursor);
  r->stream.size -= r->cursor;
  r->cursor = 0;
}

/* --- parts
 * ----------------------------------------------------------------------------------------------------------*/

static gboolean part_begin(struct recording_reader *r, GError **error)
{
  struct entry entry;
  r->stream.size = r->cursor = 0;
  r->in_part = TRUE;
  r->ended = r->cut = r->started = FALSE;
  r->inputs = r->outputs = 0;
  r->parts++;
  recording_head_clear(&r->head);
  octets_bytes(&r->stream, r->blocks.block + BLOCK_HEADER, r->blocks.payload);
  r->at_block = FALSE;
  g_free(r->where);
  r->where = g_strdup_printf("%s: part %u: ", r->blocks.path, r->parts);
  int more = next_entry(r, &entry, error);
  if (more == 0)
    r->cut = TRUE; /* killed as it began */
  if (more <= 0)
    return more == 0;
  if (entry.kind != RECORDING_HEAD || !recording_head_read(r->stream.data + entry.at, entry.size, &r->head))
    return malformed(r, error, "expected the head of a part") == 0;
  g_autofree char *name = seam_actor_name(r->head.actor);
  g_free(r->where);
  r->where = g_strdup_printf("%s: part %u (%s in run %u): ", r->blocks.path, r->parts, name, r->head.run);
  return TRUE;
}

int recording_next_part(struct recording_reader *r, const struct recording_head **head, GError **error)
{
  do {
    int more = load(r, error);
    while (more > 0 && !(r->blocks.flags & RECORDING_BEGINS)) {
      if (!r->in_part)
        return malformed(r, error, "expected a block that begins a part");
      r->at_block = FALSE;
      more = load(r, error);
    }
    if (more <= 0)
      return more;
    if (!part_begin(r, error))
      return -1;
  } while (r->cut);
  *head = &r->head;
  return 1;
}

/* --- steps
 * ----------------------------------------------------------------------------------------------------------*/

/* What stands at the end of a part must be what was read of it. */
static int part_end(struct recording_reader *r, const struct entry *entry, GError **error)
{
  struct octets_view v = octets_view_of(r->stream.data + entry->at, entry->size);
  uint64_t inputs = view_number(&v), outputs = view_number(&v);
  if (!v.good || v.at != v.end || inputs != r->inputs || outputs != r->outputs)
    return malformed(r, error, "expected the numbers of inputs and outputs that it holds");
  r->ended = TRUE;
  if (r->cursor != r->stream.size)
    return malformed(r, error, "expected nothing after the end of the part");
  int more = stream_more(r, error);
  return more > 0 ? malformed(r, error, "expected nothing after the end of the part") : more;
}

/* The outputs after an input: up to the next input or the end. 0: they may not be all. */
static int read_outputs(struct recording_reader *r, GError **error)
{
  for (;;) {
    struct entry entry;
    int more = peek_entry(r, &entry, error);
    if (more <= 0)
      return more;
    if (entry.kind == RECORDING_END || (entry.kind < SEAM_KINDS && seam_is_input((enum seam_kind)entry.kind)))
      return 1;
    if (entry.kind >= SEAM_KINDS)
      return malformed(r, error, "expected an entry of a known kind");
    if (r->entries->len > STEP_OUTPUTS_MAX)
      return malformed(r, error, "expected fewer outputs on one input");
    next_entry(r, &entry, error);
    g_array_append_val(r->entries, entry);
  }
}

/* Takes the time off the input's front. */
static gboolean step_time(struct recording_reader *r, struct recorded *input)
{
  struct octets_view v = octets_view_of(input->data, input->size);
  uint64_t since = view_number(&v);
  if (!v.good || since > (uint64_t)CLOCK_MAX || r->now > CLOCK_MAX)
    return FALSE;
  r->now = r->started ? r->now + (int64_t)since : (int64_t)since;
  r->started = TRUE;
  *input = (struct recorded){input->kind, v.at, (size_t)(v.end - v.at)};
  return TRUE;
}

static struct recorded recorded_of(const struct recording_reader *r, guint index)
{
  const struct entry *entry = &g_array_index(r->entries, struct entry, index);
  return (struct recorded){entry->kind, r->stream.data + entry->at, entry->size};
}

static int no_more(struct recording_reader *r)
{
  r->cut = TRUE;
  return 0;
}

int recording_next_step(struct recording_reader *r, struct recorded_step *step, GError **error)
{
  struct entry entry;
  if (r->ended || r->cut)
    return 0;
  stream_drop(r);
  int more = next_entry(r, &entry, error);
  if (more <= 0)
    return more < 0 ? more : no_more(r);
  if (entry.kind == RECORDING_END)
    return part_end(r, &entry, error);
  if (entry.kind >= SEAM_KINDS || !seam_is_input((enum seam_kind)entry.kind))
    return malformed(r, error, "expected an input");
  g_array_set_size(r->entries, 0);
  g_array_append_val(r->entries, entry);
  more = read_outputs(r, error);
  if (more <= 0)
    return more < 0 ? more : no_more(r);
  step->input = recorded_of(r, 0);
  if (!step_time(r, &step->input))
    return malformed(r, error, "expected the time of an input");
  g_array_set_size(r->output, 0);
  for (guint i = 1; i < r->entries->len; i++) {
    struct recorded output = recorded_of(r, i);
    g_array_append_val(r->output, output);
  }
  step->now = r->now;
  step->output = (const struct recorded *)(const void *)r->output->data;
  step->outputs = r->output->len;
  r->inputs++;
  r->outputs += step->outputs;
  return 1;
}
