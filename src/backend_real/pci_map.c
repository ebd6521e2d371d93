/* PCI distances; see pci_map.h. */
#include "backend_real/pci_map.h"

#include <hwloc.h>
#include <string.h>

struct pci_map {
  hwloc_topology_t topology;
};

/* PCI as Linux shows it is enough: hwloc's plug-in for it is left alone, which never gives its memory back.
 * OS devices are left out, for which CUDA and others would be started. */
static gboolean topology_load(hwloc_topology_t topology)
{
  hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
  return hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
         hwloc_topology_set_type_filter(topology, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL) == 0 &&
         hwloc_topology_set_type_filter(topology, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_NONE) == 0 &&
         hwloc_topology_load(topology) == 0;
}

struct pci_map *pci_map_new(const char *root)
{
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0)
    return NULL;
  if (*root)
    g_setenv("HWLOC_FSROOT", root, TRUE);
  gboolean good = topology_load(topology);
  if (*root)
    g_unsetenv("HWLOC_FSROOT");
  if (!good) {
    hwloc_topology_destroy(topology);
    return NULL;
  }
  struct pci_map *map = g_new(struct pci_map, 1);
  *map = (struct pci_map){topology};
  return map;
}

void pci_map_free(struct pci_map *map)
{
  hwloc_topology_destroy(map->topology);
  g_free(map);
}

static gpointer read_here(gpointer nothing)
{
  (void)nothing;
  return pci_map_new("");
}

const struct pci_map *pci_map_here(void)
{
  static GOnce once = G_ONCE_INIT;
  return g_once(&once, read_here, NULL);
}

static gboolean is_above(hwloc_obj_t above, hwloc_obj_t object)
{
  while (object && object != above)
    object = object->parent;
  return object != NULL;
}

/* Bridges on the way up from a device to what is above it. */
static unsigned bridges_below(hwloc_obj_t above, hwloc_obj_t device)
{
  unsigned bridges = 0;
  for (hwloc_obj_t at = device->parent; at && at != above; at = at->parent)
    bridges += at->type == HWLOC_OBJ_BRIDGE;
  return bridges;
}

static gboolean is_host_bridge(hwloc_obj_t object)
{
  return object->type == HWLOC_OBJ_BRIDGE && object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST;
}

static enum pci_distance between(hwloc_obj_t a, hwloc_obj_t b)
{
  const struct hwloc_pcidev_attr_s *pa = &a->attr->pcidev, *pb = &b->attr->pcidev;
  if (pa->domain == pb->domain && pa->bus == pb->bus && pa->dev == pb->dev)
    return PCI_SAME;
  hwloc_obj_t common = a->parent;
  while (common && !is_above(common, b))
    common = common->parent;
  if (!common)
    return PCI_UNKNOWN;
  if (is_host_bridge(common))
    return PCI_HOST;
  if (common->type == HWLOC_OBJ_BRIDGE)
    /* A switch is a bridge upstream and one downstream a port. */
    return MAX(bridges_below(common, a), bridges_below(common, b)) <= 1 ? PCI_SWITCH : PCI_SWITCHES;
  return common->nodeset && hwloc_bitmap_weight(common->nodeset) == 1 ? PCI_NUMA : PCI_FAR;
}

enum pci_distance pci_map_distance(const struct pci_map *map, const char *a, const char *b)
{
  if (!map || !a || !b || !*a || !*b)
    return PCI_UNKNOWN;
  hwloc_obj_t at = hwloc_get_pcidev_by_busidstring(map->topology, a);
  hwloc_obj_t bt = hwloc_get_pcidev_by_busidstring(map->topology, b);
  return at && bt ? between(at, bt) : PCI_UNKNOWN;
}

const char *pci_distance_text(enum pci_distance distance)
{
  static const char *const text[] = {
      [PCI_SAME] = "same device",       [PCI_SWITCH] = "same switch",  [PCI_SWITCHES] = "several switches",
      [PCI_HOST] = "same root complex", [PCI_NUMA] = "same NUMA node", [PCI_FAR] = "other NUMA node",
      [PCI_UNKNOWN] = "unknown",
  };
  return text[distance];
}
