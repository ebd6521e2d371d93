/* Distances on a made-up machine: two processors, PCIe switches with GPUs and NICs below them. */
#include <criterion/criterion.h>

#include "backend_real/pci_map.h"
#include "backend_real/sysfs.h"
#include "fake_root.h"

#define BRIDGE 0x060400
#define GPU    0x030200
#define NIC    0x020000

#define SWITCH "pci0000:00/0000:00:01.0/0000:01:00.0"

/* Below one port of the processor a switch with a GPU (03), a NIC (04) and one more switch with a GPU (07);
 * beside it a NIC (10). A second root complex of the same node with a NIC (41). Two of the other node, with a
 * GPU (81) and a NIC (c1). */
static void fake_tree(FakeRoot *root)
{
  static const struct fake_pci devices[] = {
      {"pci0000:00/0000:00:01.0", 0x8086, 1, BRIDGE, 0x01, 0x0f, 0},
      {SWITCH, 0x1000, 2, BRIDGE, 0x02, 0x0f, 0},
      {SWITCH "/0000:02:00.0", 0x1000, 2, BRIDGE, 0x03, 0x03, 0},
      {SWITCH "/0000:02:00.0/0000:03:00.0", 0x10de, 3, GPU, 0, 0, 0},
      {SWITCH "/0000:02:00.0/0000:03:00.1", 0x10de, 3, 0x040300, 0, 0, 0},
      {SWITCH "/0000:02:01.0", 0x1000, 2, BRIDGE, 0x04, 0x04, 0},
      {SWITCH "/0000:02:01.0/0000:04:00.0", 0x15b3, 0x101d, NIC, 0, 0, 0},
      {SWITCH "/0000:02:02.0", 0x1000, 2, BRIDGE, 0x05, 0x08, 0},
      {SWITCH "/0000:02:02.0/0000:05:00.0", 0x1000, 2, BRIDGE, 0x06, 0x08, 0},
      {SWITCH "/0000:02:02.0/0000:05:00.0/0000:06:00.0", 0x1000, 2, BRIDGE, 0x07, 0x07, 0},
      {SWITCH "/0000:02:02.0/0000:05:00.0/0000:06:00.0/0000:07:00.0", 0x10de, 3, GPU, 0, 0, 0},
      {"pci0000:00/0000:00:02.0", 0x8086, 1, BRIDGE, 0x10, 0x10, 0},
      {"pci0000:00/0000:00:02.0/0000:10:00.0", 0x15b3, 0x101d, NIC, 0, 0, 0},
      {"pci0000:40/0000:40:01.0", 0x8086, 1, BRIDGE, 0x41, 0x41, 0},
      {"pci0000:40/0000:40:01.0/0000:41:00.0", 0x15b3, 0x101d, NIC, 0, 0, 0},
      {"pci0000:80/0000:80:01.0", 0x8086, 1, BRIDGE, 0x81, 0x81, 1},
      {"pci0000:80/0000:80:01.0/0000:81:00.0", 0x10de, 3, GPU, 0, 0, 1},
      {"pci0000:c0/0000:c0:01.0", 0x8086, 1, BRIDGE, 0xc1, 0xc1, 1},
      {"pci0000:c0/0000:c0:01.0/0000:c1:00.0", 0x15b3, 0x101d, NIC, 0, 0, 1},
  };
  fake_two_nodes(root);
  for (size_t i = 0; i < G_N_ELEMENTS(devices); i++)
    fake_pci_device(root, &devices[i]);
}

Test(pci_map, classes)
{
  static const struct {
    const char *a, *b;
    enum pci_distance distance;
  } rows[] = {
      {"0000:03:00.0", "0000:03:00.0", PCI_SAME},     {"0000:03:00.0", "0000:03:00.1", PCI_SAME},
      {"0000:03:00.0", "0000:04:00.0", PCI_SWITCH},   {"0000:07:00.0", "0000:04:00.0", PCI_SWITCHES},
      {"0000:03:00.0", "0000:07:00.0", PCI_SWITCHES}, {"0000:03:00.0", "0000:10:00.0", PCI_HOST},
      {"0000:03:00.0", "0000:41:00.0", PCI_NUMA},     {"0000:81:00.0", "0000:c1:00.0", PCI_NUMA},
      {"0000:03:00.0", "0000:c1:00.0", PCI_FAR},      {"0000:81:00.0", "0000:04:00.0", PCI_FAR},
      {"0000:03:00.0", "0000:99:00.0", PCI_UNKNOWN},  {"0000:03:00.0", "", PCI_UNKNOWN},
      {"rxe0", "0000:03:00.0", PCI_UNKNOWN},
  };
  g_autoptr(FakeRoot) root = fake_root_new();
  fake_tree(root);
  g_autoptr(PciMap) map = pci_map_new(root->path);
  cr_assert(map);
  for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
    enum pci_distance there = pci_map_distance(map, rows[i].a, rows[i].b);
    cr_expect_eq(there, rows[i].distance, "%s %s: %s", rows[i].a, rows[i].b, pci_distance_text(there));
    cr_expect_eq(pci_map_distance(map, rows[i].b, rows[i].a), there);
  }
  cr_assert_eq(pci_map_distance(map, NULL, "0000:03:00.0"), PCI_UNKNOWN);
  cr_assert_eq(pci_map_distance(NULL, "0000:03:00.0", "0000:03:00.0"), PCI_UNKNOWN);
}

/* This machine's devices are seen, and it is read but once. */
Test(pci_map, here)
{
  g_auto(GStrv) devices = sysfs_names("", "/sys/bus/pci/devices");
  cr_assert_eq(pci_map_here(), pci_map_here());
  for (guint i = 0; devices[i]; i++)
    cr_expect_eq(pci_map_distance(pci_map_here(), devices[i], devices[i]), PCI_SAME, "%s", devices[i]);
  cr_assert_eq(pci_map_distance(pci_map_here(), "0000:ff:1f.7", "0000:ff:1f.6"), PCI_UNKNOWN);
}
