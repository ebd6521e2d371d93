/* How far apart this machine's PCI devices are, by hwloc: which share a PCIe switch, a root complex, a NUMA
 * node. */
#ifndef DM_PCI_MAP_H
#define DM_PCI_MAP_H

#include <glib.h>

/* From near to far; the classes of `nvidia-smi topo -m`. */
enum pci_distance {
  PCI_SAME,     /* functions of one device */
  PCI_SWITCH,   /* one PCIe switch, or bridge, between them: bytes do not reach the processor */
  PCI_SWITCHES, /* several, below one root port */
  PCI_HOST,     /* one root complex of the processor */
  PCI_NUMA,     /* one NUMA node */
  PCI_FAR,      /* other NUMA nodes: bytes cross between processors */
  PCI_UNKNOWN   /* one of them is not on PCI, or hwloc does not see it */
};

struct pci_map;

/* root: "" is this machine; else a folder with a copy of its /sys and /proc (not thread-safe then, as hwloc
 * is told by the environment). NULL: hwloc cannot read it. */
struct pci_map *pci_map_new(const char *root);
void pci_map_free(struct pci_map *map);
typedef struct pci_map PciMap; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PciMap, pci_map_free)

/* This machine's, read once, and kept. May be NULL. From any thread. */
const struct pci_map *pci_map_here(void);

/* Between PCI addresses ("0000:17:00.0"). map NULL or an unknown address: PCI_UNKNOWN. */
enum pci_distance pci_map_distance(const struct pci_map *map, const char *a, const char *b);
/* "same switch", "same NUMA node", … */
const char *pci_distance_text(enum pci_distance distance);

#endif
