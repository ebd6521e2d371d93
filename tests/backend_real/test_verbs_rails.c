/* Which of a shelf's NICs serves which line of a reader's. */
#include <criterion/criterion.h>
#include <string.h>

#include "backend_real/nic_gid.h"
#include "backend_real/transport_verbs_letter.h"
#include "backend_real/transport_verbs_rails.h"

enum { MOST = 8 };

struct pairing {
  const char *rails; /* "ADDRESS/BITS[*LINES] …" */
  const char *from;  /* of each line's NIC */
  const char *rail;  /* of each line */
};

static struct rail parse_rail(const char *word)
{
  g_auto(GStrv) parts = g_strsplit_set(word, "/*", -1);
  struct rail rail = {.bits = (unsigned)g_ascii_strtoull(parts[1], NULL, 10)};
  if (parts[2])
    rail.lines = (uint32_t)g_ascii_strtoull(parts[2], NULL, 10);
  cr_assert(address_parse(parts[0], rail.gid));
  if (address_is_ipv4(rail.gid))
    rail.bits += 96;
  return rail;
}

static void expect_pairing(const struct pairing *p)
{
  g_auto(GStrv) rails = g_strsplit(p->rails, " ", -1), from = g_strsplit(p->from, " ", -1);
  struct rail rail[MOST];
  uint8_t gid[MOST][16], chosen[MOST];
  g_autoptr(GString) text = g_string_new(NULL);
  for (guint r = 0; rails[r]; r++)
    rail[r] = parse_rail(rails[r]);
  for (guint i = 0; from[i]; i++)
    cr_assert(address_parse(from[i], gid[i]));
  rails_pair(rail, g_strv_length(rails), (const uint8_t(*)[16])gid, g_strv_length(from), chosen);
  for (guint i = 0; from[i]; i++)
    g_string_append_printf(text, "%u", chosen[i]);
  cr_expect_str_eq(text->str, p->rail, "%s from %s: %s, expected %s", p->rails, p->from, text->str, p->rail);
}

Test(verbs_rails, lines_and_rails)
{
  static const struct pairing pairings[] = {
      /* In one subnet: the i-th to the i-th. */
      {"10.0.0.3/24 10.0.0.4/24", "10.0.0.1 10.0.0.2 10.0.0.1 10.0.0.2", "0101"},
      {"fe80::3/64 fe80::4/64", "fe80::1 fe80::2", "01"},
      /* A subnet each, in whatever order. */
      {"10.0.0.3/24 10.0.1.3/24", "10.0.1.1 10.0.0.1 10.0.1.1 10.0.0.1", "1010"},
      {"fec0:0:0:1::3/64 fec0:0:0:2::3/64", "fec0:0:0:2::1 fec0:0:0:1::1", "10"},
      {"10.0.0.3/24 10.0.0.4/24 10.0.1.3/24", "10.0.1.1 10.0.0.1 10.0.1.1 10.0.0.2", "2021"},
      /* Not as many at both ends: all are used where there are lines enough. */
      {"10.0.0.3/24 10.0.0.4/24 10.0.0.5/24", "10.0.0.1 10.0.0.1 10.0.0.1 10.0.0.1", "0120"},
      {"10.0.0.3/24", "10.0.0.1 10.0.0.2", "00"},
      {"10.0.0.3/24 10.0.0.4/24", "10.0.0.1 10.0.0.2 10.0.0.5", "010"},
      /* Of no subnet of the shelf's, or of one address alone, which tells nothing. */
      {"10.0.0.3/24 10.0.1.3/24", "10.0.7.1 10.0.7.2", "01"},
      {"10.77.0.1/32 10.77.0.2/32", "10.77.0.1 10.77.0.1", "01"},
      /* Readers with one NIC and fewer lines than rails spread; those with several keep to the order. */
      {"fe80::3/64*1 fe80::4/64*0", "fe80::1", "1"},
      {"fe80::3/64*2 fe80::4/64*1 fe80::5/64*1", "fe80::1 fe80::1", "12"},
      {"fe80::3/64*1 fe80::4/64*0", "fe80::1 fe80::2", "01"},
  };
  for (guint i = 0; i < G_N_ELEMENTS(pairings); i++)
    expect_pairing(&pairings[i]);
}

Test(verbs_rails, subnets)
{
  g_autoptr(GArray) addresses = g_array_new(FALSE, FALSE, sizeof(struct nic_address));
  struct nic_address own = {.prefix = 96 + 20};
  struct nic ethernet = {.kind = NIC_RC, .ethernet = TRUE}, efa = {.kind = NIC_SRD};
  struct nic_choice choice = {.nic = &ethernet};
  cr_assert(address_parse("10.0.0.3", own.raw));
  g_array_append_val(addresses, own);
  memcpy(choice.gid.raw, own.raw, 16);
  cr_expect_eq(rail_bits(&choice, addresses), 96 + 20);
  cr_assert(address_parse("10.0.0.4", choice.gid.raw));
  cr_expect_eq(rail_bits(&choice, addresses), 128, "not an address of this machine's");
  cr_assert(address_parse("fe80::4", choice.gid.raw));
  cr_expect_eq(rail_bits(&choice, addresses), 64);
  choice.nic = &efa;
  cr_expect_eq(rail_bits(&choice, addresses), 64);
}
