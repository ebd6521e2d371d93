/* What every transport holds to when an end, or what it serves, goes while reads are under way: each read
 * ends once, and nothing lands afterwards. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "srd_fake.h"
#include "transport_lab.h"

#define MIB (1U << 20)

/* The peer is given up while reads are under way: each ends, and nothing lands afterwards. Then it comes
 * back. */
TRANSPORT_TEST(drop_while_reading)
{
  enum { READS = 60, ROUNDS = 12 };
  struct lab *lab = transport_lab_new(ops, 4 * MIB, (READS + 1) * MIB, NULL);
  struct ranges place = lab_serve(lab, 1, 0, MIB, 1 * MIB);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    for (uint32_t i = 0; i < READS; i++)
      lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, round * READS + i);
    g_usleep(g_rand_int_range(lab->random, 0, 4000));
    ops->reader_drop(lab->reader, LAB_SHELF);
    lab_wait(lab, (round + 1) * READS);
    memset(lab->to.base, LAB_BLANK, READS * (uint64_t)MIB);
    gboolean again = round % 2 == 1; /* it can be read once more; else what is asked of it fails */
    if (again) {
      ops->reader_peer(lab->reader, LAB_SHELF, ops->shelf_address(lab->shelf), &lab->secret);
      lab_pump(lab);
    }
    lab_read(lab, 1, 0, (uint64_t)READS * MIB, MIB, LAB_READS - 1 - round);
    lab_wait(lab, (round + 1) * READS + 1);
    *(again ? &lab->good : &lab->failed) -= 1;
    cr_assert_eq(lab_end(lab, LAB_READS - 1 - round), again ? LAB_GOOD : LAB_FAILED);
    cr_assert(lab_blank(lab, 0, READS * (uint64_t)MIB), "round %u", round);
    ops->reader_peer(lab->reader, LAB_SHELF, ops->shelf_address(lab->shelf), &lab->secret);
    lab_pump(lab);
  }
  g_free(place.range);
  transport_lab_free(lab);
}

/* The shelf goes away while reads are under way: they end. Then a new one stands at the same address. */
TRANSPORT_TEST(shelf_gone_while_reading)
{
  enum { READS = 100 };
  struct lab *lab = transport_lab_new(ops, 4 * MIB, READS * MIB, NULL);
  struct ranges place = lab_serve(lab, 1, 0, MIB, 4096);
  for (uint32_t i = 0; i < READS; i++)
    lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, i);
  lab_wait(lab, 3);
  g_autofree char *address = g_strdup(ops->shelf_address(lab->shelf));
  ops->shelf_free(lab->shelf);
  lab->shelf = NULL;
  lab_wait(lab, READS);
  lab_read(lab, 1, 0, 0, MIB, READS);
  lab_wait(lab, READS + 1);
  cr_expect_eq(lab->end[READS], LAB_FAILED);
  ops->reader_drop(lab->reader, LAB_SHELF);
  lab_open_shelf(lab, address, NULL);
  ops->shelf_serve(lab->shelf, 1, 0, MIB, &place);
  memset(lab->to.base, LAB_BLANK, MIB);
  lab_read(lab, 1, 0, 0, MIB, READS + 1);
  lab_wait(lab, READS + 2);
  cr_expect_eq(lab->end[READS + 1], LAB_GOOD);
  cr_expect(lab_has(lab, 1, 0, 0, MIB));
  g_free(place.range);
  transport_lab_free(lab);
}

/* Once shelf_serve(NULL) has returned, nobody reads the memory: it is written over at once, and what was read
 * well has none of that. */
TRANSPORT_TEST(unserve_while_reading)
{
  enum { MODELS = 40, READS = 3 };
  struct lab *lab =
      transport_lab_new(ops, 64 * MIB, MODELS * READS * MIB, &(struct transport_options){.threads = 2});
  struct ranges place[MODELS];
  for (uint32_t m = 0; m < MODELS; m++)
    place[m] = lab_serve(lab, m, 0, MIB, 128 * 1024);
  for (uint32_t i = 0; i < MODELS * READS; i++)
    lab_read(lab, i % MODELS, 0, (uint64_t)i * MIB, MIB, i);
  for (uint32_t m = MODELS; m-- > 0;) {
    ops->shelf_serve(lab->shelf, m, 0, MIB, NULL);
    for (uint32_t r = 0; r < place[m].count; r++)
      memset(lab->from.base + place[m].range[r].offset, 0xDD, place[m].range[r].length);
  }
  lab_wait(lab, MODELS * READS);
  for (uint32_t i = 0; i < MODELS * READS; i++)
    if (lab->end[i] == LAB_GOOD)
      cr_assert(lab_has(lab, i % MODELS, 0, (uint64_t)i * MIB, MIB), "read %u", i);
  lab_read(lab, 0, 0, 0, MIB, MODELS * READS);
  lab_wait(lab, MODELS * READS + 1);
  cr_expect_eq(lab_end(lab, MODELS * READS), LAB_FAILED);
  for (uint32_t m = 0; m < MODELS; m++)
    g_free(place[m].range);
  transport_lab_free(lab);
}

static gboolean one_sided(const struct transport_ops *ops)
{
  return strcmp(ops->name, "verbs") == 0;
}

/* Reads from a stopped process stay until the peer is dropped, and then end; or its NIC serves them, without
 * it. From a killed one they fail. */
TRANSPORT_TEST(stopped_and_killed_shelf)
{
  enum { READS = 40 };
  if (srd_fake_is_machine())
    return; /* its devices end at the process */
  struct ticket_secret secret = {.key = "of the stopped"};
  char address[64];
  pid_t child;
  struct lab *lab = lab_new_apart(ops, (READS + 1) * MIB, MIB, &secret, &child, address);
  ops->reader_peer(lab->reader, LAB_SHELF, address, &secret);
  lab_pump(lab);
  lab_read(lab, 1, 0, 0, MIB, 0);
  lab_wait(lab, 1);
  cr_assert_eq(lab->good, 1);
  kill(child, SIGSTOP);
  cr_assert_eq(waitpid(child, NULL, WUNTRACED), child);
  for (uint32_t i = 1; i <= READS; i++)
    lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, i);
  uint32_t served = one_sided(ops) ? READS : 0;
  if (served > 0)
    lab_wait(lab, 1 + served);
  else
    g_usleep(50000);
  cr_expect_eq(lab_ended(lab), 1 + served);
  ops->reader_drop(lab->reader, LAB_SHELF);
  lab_wait(lab, 1 + READS);
  cr_expect_eq(lab->failed, READS - served);
  ops->reader_peer(lab->reader, LAB_SHELF, address, &secret);
  lab_pump(lab);
  for (uint32_t i = 1; i <= READS; i++)
    lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, READS + i);
  kill(child, SIGKILL);
  cr_assert_eq(waitpid(child, NULL, 0), child);
  lab_wait(lab, 1 + 2 * READS);
  cr_expect_eq(lab->good, 1 + served);
  transport_lab_free(lab);
}

/* Reads that are under way when the reader ends have ended when it has. */
TRANSPORT_TEST(reader_ends_its_reads)
{
  enum { READS = 100 };
  struct lab *lab = transport_lab_new(ops, 2 * MIB, READS * MIB, NULL);
  struct ranges place = lab_serve(lab, 1, 0, MIB, MIB);
  for (uint32_t i = 0; i < READS; i++)
    lab_read(lab, 1, 0, (uint64_t)i * MIB, MIB, i);
  ops->reader_free(lab->reader);
  cr_expect_eq(lab_ended(lab), READS);
  struct reader_config config = {.memory = lab->to, .self = LAB_READER};
  lab->reader = ops->reader_new(&config, NULL);
  g_free(place.range);
  transport_lab_free(lab);
}
