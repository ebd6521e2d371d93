/* Which NICs are chosen, on made-up machines; the list and the route of this one. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "backend_real/nic_gid.h"
#include "nic_lab.h"

/* Two RoCE rails and a port without a cable, as a GPU server has them. */
static NicLab *two_rails(void)
{
  NicLab *lab = nic_lab_new();
  lab_roce(lab, "mlx5_0", "0000:10:00.0",
           "0 1 fe80::1,1 2 fe80::1,2 1 10.0.0.1,3 2 10.0.0.1,4 1 2001:db8::1,5 2 2001:db8::1");
  lab_roce(lab, "mlx5_1", "0000:50:00.0", "0 1 fe80::2,1 2 fe80::2,2 1 10.0.0.2,3 2 10.0.0.2");
  lab_roce(lab, "mlx5_2", "0000:90:00.0", "0 1 fe80::3,1 2 fe80::3,3 2 10.7.0.1");
  struct nic *down = lab_roce(lab, "mlx5_3", "0000:91:00.0", "0 2 10.0.0.3");
  down->active = FALSE;
  g_strlcpy(down->state, "PORT_DOWN", sizeof down->state);
  lab_address(lab, "127.0.0.1/8", NULL);
  lab_address(lab, "10.0.0.1/24", NULL);
  lab_address(lab, "10.0.0.2/24", NULL);
  lab_address(lab, "10.7.0.1/24", NULL);
  lab_address(lab, "2001:db8::1/64", NULL);
  lab_address(lab, "192.168.0.1/16", NULL);
  return lab;
}

/* IP over InfiniBand on the first of two ports of one fabric with a name, and a third of another. */
static NicLab *infiniband(void)
{
  NicLab *lab = nic_lab_new();
  lab_infiniband(lab, "mlx5_0", "0000:10:00.0", "0 i fec0::a");
  lab_infiniband(lab, "mlx5_1", "0000:50:00.0", "0 i fec0::b,1 i fec0::bb");
  lab_infiniband(lab, "mlx5_2", "0000:51:00.0", "0 i fec0:0:0:1::c");
  lab_infiniband(lab, "storage_0", "0000:52:00.0", "0 i fe80::d");
  lab_infiniband(lab, "storage_1", "0000:53:00.0", "0 i fe80::e");
  lab_infiniband(lab, "storage_2", "0000:54:00.0", "0 i fe80::f");
  lab_address(lab, "10.0.0.1/24", "fec0::a");
  lab_address(lab, "10.1.0.1/24", "fe80::d");
  lab_address(lab, "10.1.0.2/24", "fe80::e");
  lab_address(lab, "10.2.0.1/24", "fe80::f");
  return lab;
}

static NicLab *efa(void)
{
  NicLab *lab = nic_lab_new();
  lab_efa(lab, "rdmap0s1", "0000:10:00.0", "0 i fe80::1");
  lab_efa(lab, "rdmap0s2", "0000:50:00.0", "0 i fe80::2");
  lab_address(lab, "172.31.0.5/20", NULL);
  return lab;
}

struct row {
  struct nic_wish wish;
  const char *chosen; /* "! …": begins so */
};

static void expect_rows(NicLab *lab, const struct row *row, size_t rows)
{
  for (size_t i = 0; i < rows; i++) {
    g_autofree char *got = lab_choose(lab, &row[i].wish);
    gboolean good =
        *row[i].chosen == '!' ? g_str_has_prefix(got, row[i].chosen) : strcmp(got, row[i].chosen) == 0;
    cr_expect(good, "row %zu: %s, not %s", i, got, row[i].chosen);
  }
}

Test(nic, roce_by_the_route)
{
  static const struct row rows[] = {
      {{.local = "10.0.0.1"}, "mlx5_0:1/3 mlx5_1:1/3"},
      {{.local = "10.0.0.2"}, "mlx5_0:1/3 mlx5_1:1/3"},
      {{.local = "2001:db8::1"}, "mlx5_0:1/5"},
      {{.local = "fe80::2%eth1"}, "mlx5_1:1/1"},
      {{.local = "10.7.0.1"}, "mlx5_2:1/3"},
      {{.local = "10.0.0.2", .pci = "0000:4f:00.0"}, "mlx5_1:1/3"},
      {{.local = "10.0.0.2", .pci = "0000:11:00.0"}, "mlx5_0:1/3"},
      {{.local = "10.0.0.2", .pci = "0000:30:00.0"}, "mlx5_0:1/3 mlx5_1:1/3"},
      {{.local = "127.0.0.1"}, "mlx5_0:1/3"},
      {{.local = "127.0.0.1", .pci = "0000:50:00.0"}, "mlx5_0:1/3"},
      {{.local = "::1"}, "mlx5_0:1/3"},
      {{.local = "0.0.0.0"}, "mlx5_0:1/3"},
      {{.local = NULL}, "mlx5_0:1/3"},
      {{.local = NULL, .pci = "0000:4f:00.0"}, "mlx5_1:1/3"},
      {{.local = "10.0.0.1", .gid_given = TRUE, .gid_index = 2}, "mlx5_0:1/2 mlx5_1:1/2"},
      {{.local = "10.0.0.1", .gid_given = TRUE, .gid_index = 5}, "mlx5_0:1/5"},
      {{.local = "10.0.0.1", .gid_given = TRUE, .gid_index = 9},
       "! no active RDMA device with a GID 9 has the address 10.0.0.1: this machine has mlx5_0:1 "
       "(PORT_ACTIVE, 10.0.0.1), mlx5_1:1 (PORT_ACTIVE, 10.0.0.2), mlx5_2:1"},
      {{.local = "192.168.0.1"}, "! no active RDMA device has the address 192.168.0.1: this machine has mlx"},
      {{.local = "10.0.0"}, "! expected an IPv4 or IPv6 address, found \"10.0.0\""},
  };
  g_autoptr(NicLab) lab = two_rails();
  expect_rows(lab, rows, G_N_ELEMENTS(rows));
}

Test(nic, devices_by_name)
{
  static const struct row rows[] = {
      {{.devices = "mlx5_2"}, "mlx5_2:1/3"},
      {{.devices = "mlx5_2, mlx5_0:1"}, "mlx5_2:1/3 mlx5_0:1/3"},
      {{.devices = "mlx5_2,mlx5_0,mlx5_1", .pci = "0000:50:00.0"}, "mlx5_2:1/3 mlx5_0:1/3 mlx5_1:1/3"},
      {{.devices = "mlx5_0", .local = "2001:db8::1"}, "mlx5_0:1/5"},
      {{.devices = "mlx5_1", .local = "2001:db8::1"}, "mlx5_1:1/1"},
      {{.devices = "mlx5_1", .local = "192.168.0.1"}, "mlx5_1:1/3"},
      {{.devices = "mlx5_0", .gid_given = TRUE, .gid_index = 0}, "mlx5_0:1/0"},
      {{.devices = "mlx5_0", .gid_given = TRUE, .gid_index = 6},
       "! RDMA device mlx5_0:1 has no GID 6: it has 0 (RoCE v1, fe80::1), 1 (RoCE v2, fe80::1), 2 (RoCE v1, "
       "10.0.0.1)"},
      {{.devices = "mlx5_3"}, "! RDMA device mlx5_3:1 is not active: this machine has mlx5_0:1 (PORT_ACTIVE"},
      {{.devices = "mlx5_0:2"}, "! no RDMA device mlx5_0 with a port 2: this machine has mlx5_0:1"},
      {{.devices = "mlx5_9"}, "! no RDMA device mlx5_9 with a port 1: this machine has mlx5_0:1"},
      {{.devices = "mlx5_0,mlx5_0:1"}, "! RDMA device mlx5_0:1 is named twice"},
      {{.devices = "mlx5_0:0"}, "! RDMA device \"mlx5_0:0\": expected NAME or NAME:PORT, PORT from 1 to 255"},
      {{.devices = "mlx5_0:256"}, "! RDMA device \"mlx5_0:256\": expected"},
      {{.devices = "mlx5_0:"}, "! RDMA device \"mlx5_0:\": expected"},
      {{.devices = "mlx5_0:1x"}, "! RDMA device \"mlx5_0:1x\": expected"},
      {{.devices = ""}, "! RDMA devices: expected NAME[:PORT], separated by commas, found \"\""},
      {{.devices = "mlx5_0,,mlx5_1"}, "! RDMA devices: expected NAME[:PORT]"},
      {{.devices = ":1"}, "! RDMA devices: expected NAME[:PORT]"},
  };
  g_autoptr(NicLab) lab = two_rails();
  expect_rows(lab, rows, G_N_ELEMENTS(rows));
}

Test(nic, infiniband_by_its_network_device)
{
  static const struct row rows[] = {
      /* Same fabric by the prefix, which has a name. */
      {{.local = "10.0.0.1"}, "mlx5_0:1/0 mlx5_1:1/0"},
      {{.local = "10.0.0.1", .pci = "0000:50:00.0"}, "mlx5_1:1/0"},
      {{.local = "10.0.0.1", .gid_given = TRUE, .gid_index = 1}, "mlx5_1:1/1"},
      /* The default prefix tells nothing: those with an address in the subnet. */
      {{.local = "10.1.0.1"}, "storage_0:1/0 storage_1:1/0"},
      {{.local = "10.2.0.1"}, "storage_2:1/0"},
      {{.local = "10.9.0.1"},
       "! no active RDMA device has the address 10.9.0.1: this machine has mlx5_0:1 (PORT_ACTIVE), "},
      {{.local = "127.0.0.1"}, "mlx5_0:1/0"},
      {{.devices = "storage_2,mlx5_1"}, "storage_2:1/0 mlx5_1:1/0"},
  };
  g_autoptr(NicLab) lab = infiniband();
  expect_rows(lab, rows, G_N_ELEMENTS(rows));
}

Test(nic, efa)
{
  static const struct row rows[] = {
      {{.local = "172.31.0.5"}, "rdmap0s1:1/0 rdmap0s2:1/0"},
      {{.local = "172.31.0.5", .pci = "0000:51:00.0"}, "rdmap0s2:1/0"},
      {{.local = "127.0.0.1"}, "rdmap0s1:1/0"},
      {{.devices = "rdmap0s2,rdmap0s1"}, "rdmap0s2:1/0 rdmap0s1:1/0"},
      {{.local = "172.31.0.5", .gid_given = TRUE, .gid_index = 1},
       "! no active RDMA device with a GID 1 has"},
      {{.devices = "rdmap0s1,mlx5_0"},
       "! RDMA devices rdmap0s1 and mlx5_0 cannot be used together: one is EFA"},
  };
  g_autoptr(NicLab) lab = efa();
  struct nic *other = lab_roce(lab, "mlx5_0", "", "3 2 10.0.0.1");
  expect_rows(lab, rows, G_N_ELEMENTS(rows));
  /* A port of RoCE that has the address goes before EFA, which reaches anything. */
  const struct row both = {{.local = "10.0.0.1"}, "mlx5_0:1/3"};
  expect_rows(lab, &both, 1);
  other->active = FALSE;
  const struct row down = {{.local = "10.0.0.1"}, "rdmap0s1:1/0 rdmap0s2:1/0"};
  expect_rows(lab, &down, 1);
}

Test(nic, no_rdma)
{
  static const struct row rows[] = {
      {{.local = "127.0.0.1"}, "! this machine has no RDMA device"},
      {{.local = "10.0.0.1"}, "! this machine has no RDMA device"},
      {{.devices = "rxe0"}, "! no RDMA device rxe0 with a port 1: this machine has no RDMA device"},
  };
  g_autoptr(NicLab) lab = nic_lab_new();
  expect_rows(lab, rows, G_N_ELEMENTS(rows));
  struct nic *bare = lab_roce(lab, "rxe0", "", "");
  const struct row without[] = {
      {{.local = NULL}, "! no active RDMA device has a GID: this machine has rxe0:1 (PORT_ACTIVE)"},
      {{.devices = "rxe0"}, "! RDMA device rxe0:1 has no GID"}};
  expect_rows(lab, without, G_N_ELEMENTS(without));
  cr_assert_eq(bare->gids->len, 0);
}

/* Errors name many devices, but not all of a thousand. */
Test(nic, errors_are_bounded)
{
  g_autoptr(NicLab) lab = nic_lab_new();
  g_autoptr(GString) gids = g_string_new("0 1 fe80::1");
  for (unsigned i = 1; i < 300; i++)
    g_string_append_printf(gids, ",%u 2 10.0.%u.%u", i, i / 256, i % 256);
  for (unsigned i = 0; i < 300; i++) {
    g_autofree char *name = g_strdup_printf("mlx5_%u", i);
    lab_roce(lab, name, "", gids->str);
  }
  g_autofree char *devices = lab_choose(lab, &(struct nic_wish){.local = "11.0.0.1"});
  g_autofree char *gid =
      lab_choose(lab, &(struct nic_wish){.devices = "mlx5_7", .gid_given = TRUE, .gid_index = 300});
  cr_assert(strstr(devices, "and 284 more") && strlen(devices) < 2000, "%s", devices);
  cr_assert(g_str_has_suffix(gid, "and 284 more") && strlen(gid) < 2000, "%s", gid);
}

/* --- random machines, against the rules said once more, plainly
 * ----------------------------------------------------------------------------------------------------------*/

static void random_machine(NicLab *lab, GRand *random)
{
  unsigned nics = (unsigned)g_rand_int_range(random, 0, 6);
  for (unsigned i = 0; i < nics; i++) {
    g_autoptr(GString) gids = g_string_new(NULL);
    unsigned count = (unsigned)g_rand_int_range(random, 1, 5);
    for (unsigned k = 0; k < count; k++)
      g_string_append_printf(gids, "%s%u %d 10.0.%d.%d", k ? "," : "", k, g_rand_int_range(random, 1, 3),
                             g_rand_int_range(random, 0, 3), g_rand_int_range(random, 1, 4));
    g_autofree char *name = g_strdup_printf("d%u", i);
    g_autofree char *pci = g_strdup_printf("0000:%02x:00.0", g_rand_int_range(random, 0, 4));
    struct nic *nic = g_rand_int_range(random, 0, 4) ? lab_roce(lab, name, pci, gids->str)
                                                     : lab_efa(lab, name, pci, "0 i fe80::1");
    nic->active = g_rand_int_range(random, 0, 4) > 0;
  }
}

static gboolean in_subnet(const struct nic *nic, const uint8_t local[16])
{
  for (guint i = 0; i < nic->gids->len; i++)
    if (memcmp(g_array_index(nic->gids, struct nic_gid, i).raw, local, 15) == 0)
      return TRUE;
  return FALSE;
}

static gboolean may_be_chosen(NicLab *lab, const struct nic *nic, const uint8_t local[16])
{
  gboolean rc = FALSE;
  for (guint i = 0; i < lab->nics->len; i++) {
    const struct nic *other = lab->nics->pdata[i];
    rc = rc || (other->active && other->kind == NIC_RC && in_subnet(other, local));
  }
  return nic->active && (rc ? nic->kind == NIC_RC && in_subnet(nic, local) : nic->kind == NIC_SRD);
}

/* No GID of the NIC is better: holds local, of its subnet, of RoCE v2, first. */
static void expect_best_gid(const struct nic_choice *choice, const uint8_t local[16])
{
  for (guint i = 0; choice->nic->kind == NIC_RC && i < choice->nic->gids->len; i++) {
    const struct nic_gid *a = &choice->gid, *b = &g_array_index(choice->nic->gids, struct nic_gid, i);
    int better[] = {memcmp(b->raw, local, 16) == 0, memcmp(b->raw, local, 15) == 0, b->type[6] == '2',
                    -(int)b->index};
    int got[] = {memcmp(a->raw, local, 16) == 0, memcmp(a->raw, local, 15) == 0, a->type[6] == '2',
                 -(int)a->index};
    size_t k = 0;
    while (k < G_N_ELEMENTS(got) && got[k] == better[k])
      k++;
    cr_assert(k == G_N_ELEMENTS(got) || got[k] > better[k]);
  }
}

static void expect_right(NicLab *lab, const struct nic_wish *wish)
{
  uint8_t local[16];
  cr_assert(address_parse(wish->local, local));
  unsigned expected = 0, least = UINT_MAX;
  for (guint i = 0; i < lab->nics->len; i++)
    if (may_be_chosen(lab, lab->nics->pdata[i], local))
      least = MIN(least, lab->ground.distance(lab->nics->pdata[i], wish->pci));
  for (guint i = 0; i < lab->nics->len; i++)
    expected += may_be_chosen(lab, lab->nics->pdata[i], local) &&
                lab->ground.distance(lab->nics->pdata[i], wish->pci) == least;
  g_autoptr(GArray) chosen = nics_choose_on(&lab->ground, lab->nics, wish, NULL);
  cr_assert_eq(chosen ? chosen->len : 0, expected);
  for (guint i = 0; i < expected; i++) {
    const struct nic_choice *choice = &g_array_index(chosen, struct nic_choice, i);
    cr_assert(may_be_chosen(lab, choice->nic, local));
    cr_assert_eq(lab->ground.distance(choice->nic, wish->pci), least);
    cr_assert(i == 0 || strcmp(choice[-1].nic->device, choice->nic->device) < 0);
    expect_best_gid(choice, local);
  }
}

Test(nic, random_machines)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(4);
  for (unsigned round = 0; round < 20000; round++) {
    g_autoptr(NicLab) lab = nic_lab_new();
    random_machine(lab, random);
    char local[32], pci[16];
    snprintf(local, sizeof local, "10.0.%d.%d", g_rand_int_range(random, 0, 3),
             g_rand_int_range(random, 1, 4));
    snprintf(pci, sizeof pci, "0000:%02x:00.0", g_rand_int_range(random, 0, 4));
    g_autofree char *own = g_strconcat(local, "/24", NULL);
    lab_address(lab, own, NULL);
    expect_right(lab, &(struct nic_wish){.local = local, .pci = pci});
  }
}

/* --- this machine
 * ---------------------------------------------------------------------------------------------------------*/

Test(nic, route_to_this_machine)
{
  static const char *const loopback[] = {"127.0.0.1", "127.0.0.1:80", "localhost:80"};
  char local[46];
  for (size_t i = 0; i < G_N_ELEMENTS(loopback); i++) {
    uint8_t raw[16];
    cr_assert(route_local_address(loopback[i], local, NULL), "%s", loopback[i]);
    cr_assert(address_parse(local, raw) && address_is_loopback(raw), "%s: %s", loopback[i], local);
  }
  g_autoptr(GError) six = NULL;
  if (route_local_address("[::1]:80", local, &six))
    cr_assert_str_eq(local, "::1");
  static const char *const wrong[] = {"", ":80", "[::1", "[]:80", "no such host:1", "1.2.3.4.5:1"};
  for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
    g_autoptr(GError) error = NULL;
    cr_assert(!route_local_address(wrong[i], local, &error) && error, "%s", wrong[i]);
  }
}

/* In order, without doubles, and every active port that has a GID can be chosen by its name. */
Test(nic, list_of_this_machine)
{
  g_autoptr(GPtrArray) nics = nics_list();
  for (guint i = 0; i < nics->len; i++) {
    const struct nic *nic = nics->pdata[i], *before = i ? nics->pdata[i - 1] : NULL;
    cr_assert(nic->port >= 1 && *nic->device && *nic->state);
    cr_assert(!before || strverscmp(before->device, nic->device) < 0 ||
              (strcmp(before->device, nic->device) == 0 && before->port < nic->port));
    if (!nic->active || nic->gids->len == 0)
      continue;
    g_autofree char *name = g_strdup_printf("%s:%u", nic->device, nic->port);
    g_autoptr(GArray) chosen = nics_choose(nics, &(struct nic_wish){.devices = name}, NULL);
    cr_assert(chosen && chosen->len == 1 && g_array_index(chosen, struct nic_choice, 0).nic == nic);
  }
  g_autoptr(GArray) none = nics_choose(nics, &(struct nic_wish){.devices = "no_such_device"}, NULL);
  cr_assert(!none);
}

/* Loopback is among the addresses. */
Test(nic, addresses_of_this_machine)
{
  g_autoptr(GArray) addresses = nic_addresses();
  gboolean found = FALSE;
  for (guint i = 0; i < addresses->len; i++) {
    const struct nic_address *address = &g_array_index(addresses, struct nic_address, i);
    cr_assert_leq(address->prefix, 128);
    found = found || (address_is_ipv4(address->raw) && address->raw[12] == 127 && address->prefix == 96 + 8);
  }
  cr_assert(found);
}
