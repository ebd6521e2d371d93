/* Fake machines; see fake_root.h. */
#include "fake_root.h"
#include "../harness/temporary.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FakeRoot *fake_root_new(void)
{
  FakeRoot *root = g_new(FakeRoot, 1);
  root->path = g_dir_make_tmp("fake-root-XXXXXX", NULL);
  cr_assert(root->path);
  return root;
}

void fake_root_free(FakeRoot *root)
{
  tree_remove(root->path);
  g_free(root->path);
  g_free(root);
}

static char *make_way(FakeRoot *root, const char *path)
{
  char *full = g_strconcat(root->path, path, NULL);
  g_autofree char *folder = g_path_get_dirname(full);
  cr_assert_eq(g_mkdir_with_parents(folder, 0755), 0, "%s", full);
  return full;
}

void fake_bytes(FakeRoot *root, const char *path, const void *bytes, size_t size)
{
  g_autofree char *full = make_way(root, path);
  FILE *file = fopen(full, "wb");
  cr_assert(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0, "%s", full);
}

void fake_file(FakeRoot *root, const char *path, const char *text)
{
  fake_bytes(root, path, text, strlen(text));
}

void fake_link(FakeRoot *root, const char *path, const char *to)
{
  g_autofree char *full = make_way(root, path), *target = g_strconcat(root->path, to, NULL);
  cr_assert_eq(symlink(target, full), 0, "%s", full);
}

static void fake_processor(FakeRoot *root, unsigned processor, unsigned node)
{
  static const struct {
    const char *name, *format;
  } file[] = {{"physical_package_id", "%2$u\n"}, {"core_id", "%1$u\n"},      {"core_cpus", "%3$x\n"},
              {"thread_siblings", "%3$x\n"},     {"package_cpus", "%4$x\n"}, {"core_siblings", "%4$x\n"}};
  for (size_t i = 0; i < G_N_ELEMENTS(file); i++) {
    g_autofree char *path =
        g_strdup_printf("/sys/devices/system/cpu/cpu%u/topology/%s", processor, file[i].name);
    const unsigned value[] = {processor, node, 1U << processor, 3U << 2 * node};
    unsigned which = (unsigned)(file[i].format[1] - '1');
    g_autofree char *text = g_strdup_printf(file[i].format[3] == 'x' ? "%x\n" : "%u\n", value[which]);
    fake_file(root, path, text);
  }
}

void fake_two_nodes(FakeRoot *root)
{
  fake_file(root, "/sys/devices/system/cpu/online", "0-3\n");
  fake_file(root, "/sys/devices/system/cpu/possible", "0-3\n");
  fake_file(root, "/sys/devices/system/node/online", "0-1\n");
  for (unsigned processor = 0; processor < 4; processor++)
    fake_processor(root, processor, processor / 2);
  for (unsigned node = 0; node < 2; node++) {
    g_autofree char *folder = g_strdup_printf("/sys/devices/system/node/node%u", node);
    g_autofree char *list = g_strconcat(folder, "/cpulist", NULL),
                    *map = g_strconcat(folder, "/cpumap", NULL);
    g_autofree char *memory = g_strconcat(folder, "/meminfo", NULL);
    g_autofree char *text = g_strdup_printf("Node %u MemTotal:  1000000 kB\nNode %u MemFree:  %u kB\n", node,
                                            node, 500000 + node);
    fake_file(root, list, node ? "2-3\n" : "0-1\n");
    fake_file(root, map, node ? "c\n" : "3\n");
    fake_file(root, memory, text);
  }
}

/* What hwloc reads of the configuration space: the kind of header and, of bridges, the buses below. */
static void fake_config(FakeRoot *root, const char *folder, const struct fake_pci *pci, unsigned bus)
{
  uint8_t config[256] = {0};
  config[0x0e] = pci->to_bus != 0;
  config[0x18] = (uint8_t)bus;
  config[0x19] = (uint8_t)pci->from_bus;
  config[0x1a] = (uint8_t)pci->to_bus;
  for (unsigned i = 0; i < 2; i++) {
    config[i] = (uint8_t)(pci->vendor >> 8 * i);
    config[2 + i] = (uint8_t)(pci->device >> 8 * i);
    config[0x0a + i] = (uint8_t)(pci->class >> (8 + 8 * i));
  }
  g_autofree char *path = g_strconcat(folder, "/config", NULL);
  fake_bytes(root, path, config, sizeof config);
}

static void fake_number(FakeRoot *root, const char *folder, const char *name, const char *format, int value)
{
  g_autofree char *path = g_strconcat(folder, "/", name, NULL);
  g_autofree char *text = strcmp(format, "x") == 0 ? g_strdup_printf("0x%04x\n", (unsigned)value)
                                                   : g_strdup_printf("%d\n", value);
  fake_file(root, path, text);
}

void fake_pci_device(FakeRoot *root, const struct fake_pci *pci)
{
  g_autofree char *name = g_path_get_basename(pci->path),
                  *folder = g_strconcat("/sys/devices/", pci->path, NULL);
  g_autofree char *link = g_strconcat("/sys/bus/pci/devices/", name, NULL);
  fake_number(root, folder, "vendor", "x", (int)pci->vendor);
  fake_number(root, folder, "device", "x", (int)pci->device);
  fake_number(root, folder, "class", "x", (int)pci->class);
  fake_number(root, folder, "numa_node", "d", pci->node);
  g_autofree char *cpus = g_strconcat(folder, "/local_cpus", NULL);
  fake_file(root, cpus, pci->node ? "c\n" : "3\n");
  fake_config(root, folder, pci, (unsigned)strtoul(name + 5, NULL, 16));
  fake_link(root, link, folder);
  if (!pci->driver)
    return;
  g_autofree char *driver = g_strconcat("/sys/bus/pci/drivers/", pci->driver, NULL);
  g_autofree char *module = g_strconcat(driver, "/uevent", NULL),
                  *taken = g_strconcat(folder, "/driver", NULL);
  fake_file(root, module, "");
  fake_link(root, taken, driver);
}
