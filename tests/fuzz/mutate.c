#include "mutate.h"

#include <string.h>

/* Numbers and words at which parsers fall over: limits of the integer types and of double, and spellings of
 * no number. */
static const char *const words[] = {
    "0",
    "-0",
    "1",
    "-1",
    "+1",
    "00",
    "0.5",
    "-0.0",
    ".5",
    "5.",
    "1e",
    "1e-400",
    "1e308",
    "1e309",
    "-1e309",
    "nan",
    "-nan",
    "nan(1)",
    "inf",
    "-inf",
    "infinity",
    "0x10",
    "1_000",
    "1,5",
    "255",
    "256",
    "32768",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "4.9e-324",
    "1e-7",
    "1e10",
    "1e18",
    "1e19",
    "99999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999",
    "",
    " ",
    "\"",
    "\"\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "#",
    "# ",
    ";",
    "=",
    ":",
    ",",
    ",,",
    "[",
    "]",
    "[]",
    "{",
    "}",
    "{}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "null",
    "true",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\xef\xbb\xbf",
    "\xff",
    "\xc0\x80",
    "\xed\xa0\x80",
    "%s%n",
    "../",
    "1970-01-01 00:00:00",
    "2023-02-30 25:61:61",
    "9999-12-31 23:59:59.9999999",
    "*",
    "8:8",
};

struct mutator {
  const struct corpus *corpus;
  uint64_t random; /* state of splitmix64 */
  size_t size_max;
  GByteArray *bytes; /* the input being made */
  GArray *cuts;      /* size_t: where a line or field starts, and the end */
};

struct mutator *mutator_new(const struct corpus *corpus, gint64 seed, size_t size_max)
{
  struct mutator *mutator = g_new0(struct mutator, 1);
  mutator->corpus = corpus;
  mutator->random = (uint64_t)seed;
  for (size_t i = 0; size_max == 0 && i < corpus_count(corpus); i++) {
    size_t size;
    corpus_input(corpus, i, &size);
    mutator->size_max = MAX(mutator->size_max, MAX(256, 2 * size));
  }
  if (size_max != 0)
    mutator->size_max = size_max;
  mutator->bytes = g_byte_array_sized_new(4096);
  mutator->cuts = g_array_new(FALSE, FALSE, sizeof(size_t));
  return mutator;
}

void mutator_free(struct mutator *mutator)
{
  g_byte_array_unref(mutator->bytes);
  g_array_unref(mutator->cuts);
  g_free(mutator);
}

/* splitmix64 (Steele, Lea and Flood, OOPSLA 2014); uniform enough below `limit`, which is never 0 here. */
static size_t draw(struct mutator *mutator, size_t limit)
{
  uint64_t z = (mutator->random += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % limit;
}

/* Puts `size` bytes in the place of bytes [from, to). */
static void replace(struct mutator *mutator, size_t from, size_t to, const void *data, size_t size)
{
  GByteArray *bytes = mutator->bytes;
  size_t tail = bytes->len - to;
  g_autofree uint8_t *copy = g_memdup2(data, size); /* data may lie in bytes itself */
  if (from + size + tail > bytes->len)
    g_byte_array_set_size(bytes, from + size + tail);
  memmove(bytes->data + from + size, bytes->data + to, tail);
  if (size > 0)
    memcpy(bytes->data + from, copy, size);
  g_byte_array_set_size(bytes, from + size + tail);
}

static void draw_range(struct mutator *mutator, size_t limit, size_t *from, size_t *to)
{
  *from = draw(mutator, limit + 1);
  size_t longest = draw(mutator, 4) ? MIN(16, limit - *from) : limit - *from;
  *to = *from + draw(mutator, longest + 1);
}

static void flip_bit(struct mutator *mutator)
{
  if (mutator->bytes->len > 0)
    mutator->bytes->data[draw(mutator, mutator->bytes->len)] ^= 1u << draw(mutator, 8);
}

static void set_byte(struct mutator *mutator)
{
  static const char likely[] = "0123456789-+.eE,;:=\"'[]{}#\\ \t\r\n\0\x7f\xff";
  if (mutator->bytes->len > 0)
    mutator->bytes->data[draw(mutator, mutator->bytes->len)] =
        draw(mutator, 2) ? (uint8_t)likely[draw(mutator, sizeof likely - 1)] : (uint8_t)draw(mutator, 256);
}

static void insert_bytes(struct mutator *mutator)
{
  uint8_t bytes[16];
  size_t size = 1 + draw(mutator, sizeof bytes);
  uint8_t same = (uint8_t)draw(mutator, 256);
  gboolean repeated = draw(mutator, 2) == 0;
  for (size_t i = 0; i < size; i++)
    bytes[i] = repeated ? same : (uint8_t)draw(mutator, 256);
  size_t at = draw(mutator, mutator->bytes->len + 1);
  replace(mutator, at, at, bytes, size);
}

static void delete_bytes(struct mutator *mutator)
{
  size_t from, to;
  draw_range(mutator, mutator->bytes->len, &from, &to);
  replace(mutator, from, to, NULL, 0);
}

static void copy_block(struct mutator *mutator)
{
  size_t from, to, at = draw(mutator, mutator->bytes->len + 1);
  draw_range(mutator, mutator->bytes->len, &from, &to);
  size_t end = draw(mutator, 2) ? at : MIN(at + to - from, mutator->bytes->len);
  replace(mutator, at, end, mutator->bytes->data + from, to - from);
}

/* The start of this input, the end of another. */
static void splice(struct mutator *mutator)
{
  size_t size;
  const uint8_t *other = corpus_input(mutator->corpus, draw(mutator, corpus_count(mutator->corpus)), &size);
  size_t from = draw(mutator, size + 1), at = draw(mutator, mutator->bytes->len + 1);
  replace(mutator, at, mutator->bytes->len, other + from, size - from);
}

static void insert_word(struct mutator *mutator)
{
  const char *word = words[draw(mutator, G_N_ELEMENTS(words))];
  size_t at = draw(mutator, mutator->bytes->len + 1);
  replace(mutator, at, at, word, strlen(word));
}

/* Cuts bytes behind each separator; returns the number of pieces, at least 1. Piece i is [cut i, cut i + 1).
 */
static size_t cut(GArray *cuts, const uint8_t *bytes, size_t size, const char *separators)
{
  size_t start = 0;
  g_array_set_size(cuts, 0);
  g_array_append_val(cuts, start);
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != '\0' && strchr(separators, bytes[i])) {
      start = i + 1;
      g_array_append_val(cuts, start);
    }
  g_array_append_val(cuts, size);
  return cuts->len - 1;
}

static void piece(const struct mutator *mutator, size_t index, size_t *from, size_t *to)
{
  *from = g_array_index(mutator->cuts, size_t, index);
  *to = g_array_index(mutator->cuts, size_t, index + 1);
}

/* Deletes, doubles, moves or swaps one of the pieces between separators, these included. */
static void move_piece(struct mutator *mutator, const char *separators)
{
  size_t count = cut(mutator->cuts, mutator->bytes->data, mutator->bytes->len, separators);
  size_t from, to, other_from, other_to;
  piece(mutator, draw(mutator, count), &from, &to);
  piece(mutator, draw(mutator, count), &other_from, &other_to);
  g_autofree uint8_t *moved = g_memdup2(mutator->bytes->data + from, to - from);
  g_autofree uint8_t *other = g_memdup2(mutator->bytes->data + other_from, other_to - other_from);
  switch (draw(mutator, 4)) {
  case 0:
    replace(mutator, from, to, NULL, 0);
    break;
  case 1:
    replace(mutator, to, to, moved, to - from);
    break;
  case 2:
    replace(mutator, other_from, other_from, moved, to - from);
    break;
  default: /* the later one first, so that the earlier one's place still holds */
    if (from == other_from)
      break;
    replace(mutator, MAX(from, other_from), MAX(to, other_to), from < other_from ? moved : other,
            from < other_from ? to - from : other_to - other_from);
    replace(mutator, MIN(from, other_from), MIN(to, other_to), from < other_from ? other : moved,
            from < other_from ? other_to - other_from : to - from);
  }
}

static void move_line(struct mutator *mutator)
{
  move_piece(mutator, "\n");
}

static void move_field(struct mutator *mutator)
{
  move_piece(mutator, ",;\n");
}

static const char field_separators[] = ",;:=\n\r\t \"[]{}";

/* A field's text without its separator becomes a word that parsers fall over, or a field of another input. */
static void replace_field(struct mutator *mutator)
{
  const uint8_t *text;
  size_t size, from, to;
  if (draw(mutator, 3)) {
    const char *word = words[draw(mutator, G_N_ELEMENTS(words))];
    text = (const uint8_t *)word;
    size = strlen(word);
  } else {
    const uint8_t *other = corpus_input(mutator->corpus, draw(mutator, corpus_count(mutator->corpus)), &size);
    piece(mutator, draw(mutator, cut(mutator->cuts, other, size, field_separators)), &from, &to);
    text = other + from;
    size = to - from;
  }
  piece(mutator,
        draw(mutator, cut(mutator->cuts, mutator->bytes->data, mutator->bytes->len, field_separators)), &from,
        &to);
  replace(mutator, from, MAX(from, to - (to < mutator->bytes->len)), text, size);
}

static void truncate_input(struct mutator *mutator)
{
  if (draw(mutator, 4) == 0) /* seldom: it undoes what the others did */
    g_byte_array_set_size(mutator->bytes, draw(mutator, mutator->bytes->len + 1));
}

const uint8_t *mutator_next(struct mutator *mutator, size_t *size)
{
  /* Fields and lines more often than bytes: a parser rejects most inputs with a byte changed at once. */
  static void (*const mutations[])(struct mutator *) = {
      flip_bit,      set_byte,      insert_bytes,  delete_bytes,  copy_block,
      splice,        insert_word,   move_line,     move_field,    move_line,
      replace_field, replace_field, replace_field, replace_field, truncate_input,
  };
  size_t input_size;
  const uint8_t *input =
      corpus_input(mutator->corpus, draw(mutator, corpus_count(mutator->corpus)), &input_size);
  g_byte_array_set_size(mutator->bytes, 0);
  g_byte_array_append(mutator->bytes, input, input_size);
  size_t count = 1u << draw(mutator, 5);
  for (size_t i = draw(mutator, count); i < count; i++) {
    mutations[draw(mutator, G_N_ELEMENTS(mutations))](mutator);
    if (mutator->bytes->len > mutator->size_max)
      g_byte_array_set_size(mutator->bytes, mutator->size_max);
  }
  *size = mutator->bytes->len;
  return mutator->bytes->data;
}
