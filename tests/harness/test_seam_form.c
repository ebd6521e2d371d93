/* The written form of what passes the seam: every field is in it, every difference is found by its name,
 * inputs come back as they were, and nothing that is no form is taken for one. */
#include <criterion/criterion.h>
#include <string.h>

#include "harness/seam_fields.h"

static struct range places[] = {{4096, 8192}, {65536, 100}};
static struct ranges two = {places, 2, 2}, one = {places, 1, 1};
static uint32_t slots[] = {0, 1}, servers[] = {3, 5}, first_piece[] = {0, 1, 2, 2, 3};
static uint64_t bytes[] = {10, 20, 0, 30}, group_bytes[] = {30, 30}, group_offset[] = {0, 30};
static struct piece pieces[] = {{0, 10}, {10, 20}, {30, 30}};
static struct fetch_plan plan = {2, 2, slots, bytes, group_bytes, group_offset, first_piece, pieces, 60};
static double layers[] = {1.5, 2.5};
static struct message heartbeat = {.type = MESSAGE_HEARTBEAT, .heartbeat = {.epoch = 7}};

/* Large enough for each struct of the table; pointers are set, all else is as filled. */
union spec {
  struct fetch_spec fetch;
  struct copy_spec copy;
  struct compute_spec compute;
  struct seam_mail mail;
  struct seam_place place;
  struct record record;
  struct completion completion;
  uint8_t raw[512];
};

static void spec_init(enum seam_kind kind, union spec *spec)
{
  memset(spec, 0, sizeof *spec);
  for (const struct seam_field *f = seam_fields[kind]; f->name; f++) {
    const void *pointers[] = {[SEAM_RANGES] = &one,
                              [SEAM_LETTER] = &heartbeat,
                              [SEAM_PLAN] = &plan,
                              [SEAM_SERVERS] = servers,
                              [SEAM_LAYERS] = layers};
    if (f->kind >= SEAM_RANGES)
      memcpy(spec->raw + f->offset, &pointers[f->kind], sizeof(void *));
  }
  if (kind == SEAM_COMPUTE)
    spec->compute.layers = 2;
}

/* Another value in one field; pointers to other things. Returns how to undo what is not in the struct. */
static void spec_change(union spec *spec, const struct seam_field *f)
{
  static const struct ranges *const other = &two;
  if (f->kind == SEAM_RANGES)
    memcpy(spec->raw + f->offset, &other, sizeof other);
  else if (f->kind < SEAM_RANGES)
    spec->raw[f->offset] ^= 1;
}

Test(seam_form, every_field_is_written_and_named)
{
  unsigned fields = 0;
  for (enum seam_kind kind = SEAM_START; kind < SEAM_KINDS; kind++)
    for (const struct seam_field *f = seam_fields[kind]; f->name; f++) {
      struct octets was = {0}, is = {0};
      union spec spec;
      if (f->kind > SEAM_RANGES || (kind == SEAM_COMPUTE && strcmp(f->name, "layers") == 0))
        continue; /* below */
      spec_init(kind, &spec);
      seam_write(&was, kind, &spec);
      spec_change(&spec, f);
      seam_write(&is, kind, &spec);
      g_autofree char *difference = seam_difference(kind, was.data, was.size, is.data, is.size);
      g_autofree char *expected = g_strdup_printf("%s: expected ", f->name);
      cr_assert(difference && g_str_has_prefix(difference, expected), "%s %s: %s", seam_name(kind), f->name,
                difference);
      g_autofree char *same = seam_difference(kind, is.data, is.size, is.data, is.size);
      cr_assert_null(same);
      fields++;
      g_free(was.data);
      g_free(is.data);
    }
  cr_assert_gt(fields, 60);
}

/* What pointers point to, to the last number. */
Test(seam_form, what_is_pointed_to_counts)
{
  struct fetch_spec fetch = {.plan = &plan, .server = servers, .host = &two, .ring_bytes = 1};
  struct compute_spec compute = {.layers = 2, .layer_ns = layers, .device = &two};
  struct seam_mail mail = {ACTOR(ACTOR_CONTROLLER, 0), &heartbeat};
  struct {
    enum seam_kind kind;
    const void *spec;
    void *number;
    size_t size;
    const char *field;
  } cases[] = {
      {SEAM_FETCH, &fetch, &slots[1], 4, "plan"},
      {SEAM_FETCH, &fetch, &bytes[3], 8, "plan"},
      {SEAM_FETCH, &fetch, &group_bytes[0], 8, "plan"},
      {SEAM_FETCH, &fetch, &group_offset[1], 8, "plan"},
      {SEAM_FETCH, &fetch, &pieces[2].offset, 8, "plan"},
      {SEAM_FETCH, &fetch, &pieces[0].length, 8, "plan"},
      {SEAM_FETCH, &fetch, &plan.total_bytes, 8, "plan"},
      {SEAM_FETCH, &fetch, &servers[1], 4, "server"},
      {SEAM_FETCH, &fetch, &places[1].length, 8, "host"},
      {SEAM_COMPUTE, &compute, &layers[1], 8, "layer_ns"},
      {SEAM_SEND, &mail, &heartbeat.heartbeat.epoch, 4, "message"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    struct octets was = {0}, is = {0};
    seam_write(&was, cases[i].kind, cases[i].spec);
    ((uint8_t *)cases[i].number)[0] ^= 1;
    seam_write(&is, cases[i].kind, cases[i].spec);
    ((uint8_t *)cases[i].number)[0] ^= 1;
    g_autofree char *difference = seam_difference(cases[i].kind, was.data, was.size, is.data, is.size);
    cr_assert(difference && g_str_has_prefix(difference, cases[i].field), "case %zu: %s", i, difference);
    g_free(was.data);
    g_free(is.data);
  }
}

Test(seam_form, no_range_is_not_no_place)
{
  struct ranges empty = {0};
  struct copy_spec with = {.host = &empty}, without = {.host = NULL};
  struct octets was = {0}, is = {0};
  seam_write(&was, SEAM_COPY, &with);
  seam_write(&is, SEAM_COPY, &without);
  g_autofree char *difference = seam_difference(SEAM_COPY, was.data, was.size, is.data, is.size);
  cr_assert_str_eq(difference, "host: expected [], found none");
  g_free(was.data);
  g_free(is.data);
}

Test(seam_form, inputs_come_back)
{
  struct message_limits limits;
  struct seam_input input;
  message_limits_init(&limits, 10, 4, 3);
  for (uint64_t i = 0; i < 64; i++) {
    struct completion completion = {1ULL << i, (enum op_status)(i % 3), UINT64_MAX >> i, i};
    struct octets form = {0};
    seam_write(&form, SEAM_COMPLETION, &completion);
    cr_assert(seam_read_input(SEAM_COMPLETION, form.data, form.size, &limits, &input));
    cr_assert(input.completion.tag == completion.tag && input.completion.status == completion.status &&
              input.completion.bytes == completion.bytes && input.completion.steps == completion.steps);
    for (size_t cut = 0; cut < form.size; cut++)
      cr_assert_not(seam_read_input(SEAM_COMPLETION, form.data, cut, &limits, &input));
    g_free(form.data);
  }
}

Test(seam_form, what_is_no_input_is_refused)
{
  struct message_limits limits;
  struct seam_input input;
  struct message dispatch = {.type = MESSAGE_DISPATCH, .dispatch = {.model = 10}};
  struct octets form = {0};
  message_limits_init(&limits, 10, 4, 3);
  seam_write(&form, SEAM_MESSAGE, &(struct seam_mail){ACTOR(ACTOR_CONTROLLER, 0), &dispatch});
  cr_assert_not(seam_read_input(SEAM_MESSAGE, form.data, form.size, &limits, &input), "model 10 of 10");
  cr_assert_not(seam_read_input(SEAM_SEND, form.data, form.size, &limits, &input), "an output");
  static const uint8_t eleven[11] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
  static const uint8_t too_large[10] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
  static const uint8_t status[4] = {1, 3, 0, 0}, more[2] = {1, 1};
  cr_assert_not(seam_read_input(SEAM_TIMER_DUE, eleven, sizeof eleven, &limits, &input));
  cr_assert_not(seam_read_input(SEAM_TIMER_DUE, too_large, sizeof too_large, &limits, &input));
  cr_assert_not(seam_read_input(SEAM_COMPLETION, status, sizeof status, &limits, &input));
  cr_assert_not(seam_read_input(SEAM_TIMER_DUE, more, sizeof more, &limits, &input));
  g_free(form.data);
}

/* Whatever stands in a recording, there are words for it. */
Test(seam_form, any_bytes_have_a_text)
{
  GRand *random = g_rand_new_with_seed(5);
  for (unsigned i = 0; i < 20000; i++) {
    uint8_t data[64];
    for (size_t b = 0; b < sizeof data; b++)
      data[b] = (uint8_t)g_rand_int(random);
    enum seam_kind kind = (enum seam_kind)g_rand_int_range(random, 0, SEAM_KINDS);
    size_t size = (size_t)g_rand_int_range(random, 0, sizeof data);
    g_autofree char *text = seam_text(kind, data, size),
                    *more = seam_difference(kind, data, size, data + 1, size);
    cr_assert(g_str_has_prefix(text, seam_name(kind)) && strlen(text) < 4000);
  }
  g_rand_free(random);
}
