/* A reader of its own mind; see verbs_liar.h. */
#include "verbs_liar.h"

#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/verbs_rc.h"

struct liar *liar_new(struct lab *lab)
{
  struct liar *liar = g_new0(struct liar, 1);
  g_autoptr(GError) error = NULL;
  g_autoptr(GPtrArray) nics = nics_list();
  g_autoptr(GArray) choices = nics_choose(nics, &(struct nic_wish){0}, &error);
  cr_assert(choices, "%s", error ? error->message : "");
  const struct nic_choice *choice = &g_array_index(choices, struct nic_choice, 0);
  liar->lab = lab;
  liar->memory = (struct memory){g_malloc(LIAR_MEMORY), LIAR_MEMORY};
  memset(liar->memory.base, LAB_BLANK, LIAR_MEMORY);
  liar->regions = g_array_new(FALSE, FALSE, sizeof(struct verbs_region));
  struct verbs_end_config config = {
      .nic = choice->nic, .gid = choice->gid, .memory = &liar->memory, .memories = 1};
  liar->end = verbs_rc.open(&config, &error);
  cr_assert(liar->end, "%s", error ? error->message : "");
  cr_assert(ticket_secret_random(&liar->secret, NULL));
  lab->ops->shelf_admit(lab->shelf, LIAR, &liar->secret);
  return liar;
}

/* What the tests wait for came already, or never comes. */
static void line_end(struct liar *liar)
{
  if (liar->line)
    verbs_rc.line_free(liar->line);
  liar->line = NULL;
}

void liar_free(struct liar *liar)
{
  line_end(liar);
  verbs_rc.close(liar->end);
  g_array_unref(liar->regions);
  g_free(liar->memory.base);
  g_free(liar);
}

static void take_regions(struct liar *liar, const struct verbs_letter *letter)
{
  for (uint32_t i = 0; i < letter->entries; i++) {
    struct verbs_region region;
    verbs_letter_region(letter, i, &region);
    if (region.add)
      g_array_append_val(liar->regions, region);
  }
}

static void take_letters(struct liar *liar)
{
  struct lab_letter *l;
  lab_pump(liar->lab);
  while ((l = g_queue_pop_head(&liar->lab->caught))) {
    gsize size;
    const uint8_t *data = g_bytes_get_data(l->bytes, &size);
    struct verbs_letter letter;
    cr_assert(verbs_letter_parse(data, size, &letter));
    if (letter.kind == VERBS_REGIONS)
      take_regions(liar, &letter);
    else
      liar->answer = letter;
    lab_letter_free(l);
  }
}

void liar_post(struct liar *liar, const GByteArray *letter)
{
  liar->answer.kind = 0;
  liar->lab->ops->shelf_letter(liar->lab->shelf, LIAR, letter->data, letter->len);
  take_letters(liar);
}

GByteArray *liar_letter(struct liar *liar, uint64_t attempt)
{
  struct verbs_letter letter = {.kind = VERBS_OPEN, .attempt = attempt, .offers = {.lines = 1}};
  letter.offers.size[0] = (uint8_t)verbs_rc.offer(liar->line, letter.offers.bytes[0]);
  ticket_issue(&liar->secret, LIAR, LAB_SHELF, NO_INDEX, attempt, letter.ticket);
  return verbs_letter_pack(&letter);
}

gboolean liar_open(struct liar *liar, uint64_t attempt)
{
  g_autoptr(GError) error = NULL;
  line_end(liar);
  g_array_set_size(liar->regions, 0);
  liar->line = verbs_rc.line_new(liar->end, liar, &error);
  cr_assert(liar->line, "%s", error ? error->message : "");
  g_autoptr(GByteArray) letter = liar_letter(liar, attempt);
  liar_post(liar, letter);
  if (liar->answer.kind != VERBS_ACCEPT)
    return FALSE;
  cr_assert_eq(liar->answer.attempt, attempt);
  const struct verbs_offers *theirs = &liar->answer.offers;
  cr_assert(verbs_rc.connect(liar->line, theirs->bytes[0], theirs->size[0], &error), "%s",
            error ? error->message : "");
  return TRUE;
}

const struct verbs_region *liar_region(const struct liar *liar, uint32_t model, uint64_t offset)
{
  const struct verbs_region *found = NULL;
  for (guint i = 0; i < liar->regions->len && !found; i++) {
    const struct verbs_region *r = &g_array_index(liar->regions, struct verbs_region, i);
    if (r->model == model && offset - r->offset < r->bytes)
      found = r;
  }
  cr_assert(found, "no region of model %u is told", model);
  return found;
}

static gint64 in_time(void)
{
  return g_get_monotonic_time() + LAB_WAIT_NS / 1000;
}

gboolean liar_read(struct liar *liar, uint64_t address, uint32_t key, uint32_t bytes)
{
  struct verbs_read read = {.address = address, .key = key, .bytes = bytes, .tag = address};
  struct verbs_done done;
  gboolean more;
  verbs_rc.post(liar->line, &read, 1);
  for (gint64 until = in_time(); verbs_rc.poll(liar->end, &done, 1, &more) == 0; g_thread_yield())
    cr_assert_lt(g_get_monotonic_time(), until, "a read does not end");
  cr_assert_eq(done.tag, address);
  return done.good;
}

gboolean liar_write(struct liar *liar, uint64_t address, uint32_t key, uint32_t bytes)
{
  struct rc_end *end = (struct rc_end *)liar->end;
  struct ibv_sge piece[VERBS_SGES];
  struct ibv_send_wr *bad, work = {.sg_list = piece,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {.remote_addr = address, .rkey = key}};
  struct ibv_wc wc;
  work.num_sge = (int)verbs_memory_pieces(end->memory[0], 0, bytes, piece);
  cr_assert_eq(ibv_post_send(((struct rc_line *)liar->line)->qp, &work, &bad), 0);
  for (gint64 until = in_time(); ibv_poll_cq(end->cq, 1, &wc) == 0; g_thread_yield())
    cr_assert_lt(g_get_monotonic_time(), until, "a write does not end");
  return wc.status == IBV_WC_SUCCESS;
}
