/* Tickets: the wire to the byte, what is refused, and the window of serials against a plain set. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/ticket.h"

static const struct ticket_secret secret = {{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                             16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};

/* What a window remembers. */
#define TICKETS ((int)sizeof(((struct ticket_window *)0)->seen) * 8)

static gboolean accept(uint32_t reader, uint32_t shelf, uint32_t model, uint64_t serial,
                       struct ticket_window *window)
{
  uint8_t wire[TICKET_BYTES];
  struct ticket ticket;
  ticket_issue(&secret, reader, shelf, model, serial, wire);
  ticket_parse(wire, &ticket);
  return ticket_accept(&ticket, &secret, 3, window);
}

/* The tag was computed by another program (Python's hmac, key and fields as here). */
Test(ticket, wire)
{
  static const char *expected = "0100000203000000d12f01008877665544332211"
                                "f3393002a51b53a25ca969426a5e011e377b4262f702f9a529d2d163c8a3a504";
  uint8_t wire[TICKET_BYTES];
  ticket_issue(&secret, 0x02000001, 3, 77777, 0x1122334455667788, wire);
  for (int i = 0; i < TICKET_BYTES; i++)
    cr_expect_eq(wire[i],
                 g_ascii_xdigit_value(expected[2 * i]) << 4 | g_ascii_xdigit_value(expected[2 * i + 1]),
                 "byte %d", i);
  struct ticket ticket;
  ticket_parse(wire, &ticket);
  cr_expect(ticket.reader == 0x02000001 && ticket.shelf == 3 && ticket.model == 77777 &&
            ticket.serial == 0x1122334455667788);
}

Test(ticket, every_changed_bit_is_refused)
{
  uint8_t wire[TICKET_BYTES];
  ticket_issue(&secret, 1, 3, 5, 7, wire);
  for (int bit = 0; bit < TICKET_BYTES * 8; bit++) {
    struct ticket_window window = {0};
    struct ticket ticket;
    wire[bit / 8] ^= 1 << bit % 8;
    ticket_parse(wire, &ticket);
    cr_expect_not(ticket_accept(&ticket, &secret, ticket.shelf, &window), "bit %d", bit);
    cr_expect_eq(window.newest, 0, "a bad ticket moved the window");
    wire[bit / 8] ^= 1 << bit % 8;
  }
}

Test(ticket, other_shelf_and_other_secret_are_refused)
{
  struct ticket_window window = {0};
  cr_expect_not(accept(1, 4, 5, 1, &window));
  cr_expect(accept(1, 3, 5, 1, &window));
  struct ticket_secret other = secret;
  other.key[31] ^= 1;
  uint8_t wire[TICKET_BYTES];
  struct ticket ticket;
  ticket_issue(&other, 1, 3, 5, 2, wire);
  ticket_parse(wire, &ticket);
  cr_expect_not(ticket_accept(&ticket, &secret, 3, &window));
}

/* Serials in a random walk, with jumps: taken if not seen and within TICKETS of the newest. */
Test(ticket, window_equals_a_set)
{
  GRand *random = g_rand_new_with_seed(11);
  for (int round = 0; round < 20; round++) {
    struct ticket_window window = {0};
    GHashTable *seen = g_hash_table_new(NULL, NULL);
    uint64_t newest = 0;
    for (int i = 0; i < 800; i++) {
      uint64_t back = g_rand_int_range(random, 0, i % 3 ? 30 : TICKETS + 5000);
      uint64_t serial = g_rand_boolean(random)
                            ? newest + g_rand_int_range(random, 0, i % 50 ? 200 : 2 * TICKETS)
                            : newest - MIN(back, newest);
      gboolean fresh = !g_hash_table_contains(seen, GSIZE_TO_POINTER(serial)) &&
                       (serial > newest || newest - serial < TICKETS);
      cr_assert_eq(accept(1, 3, 0, serial, &window), fresh, "serial %u, newest %u", (unsigned)serial,
                   (unsigned)newest);
      if (fresh)
        g_hash_table_add(seen, GSIZE_TO_POINTER(serial));
      newest = MAX(newest, serial);
    }
    g_hash_table_destroy(seen);
  }
  g_rand_free(random);
}

Test(ticket, serials_at_the_end_of_numbers)
{
  struct ticket_window window = {0};
  cr_expect(accept(1, 3, 0, UINT64_MAX, &window));
  cr_expect_not(accept(1, 3, 0, UINT64_MAX, &window));
  cr_expect(accept(1, 3, 0, UINT64_MAX - TICKETS + 1, &window));
  cr_expect_not(accept(1, 3, 0, UINT64_MAX - TICKETS, &window));
  cr_expect_not(accept(1, 3, 0, 0, &window));
}

Test(ticket, secrets_are_random)
{
  struct ticket_secret a, b;
  cr_assert(ticket_secret_random(&a, NULL) && ticket_secret_random(&b, NULL));
  cr_expect_neq(memcmp(&a, &b, sizeof a), 0);
}
