/* A folder that looks like a machine's /sys and /proc. */
#ifndef FAKE_ROOT_H
#define FAKE_ROOT_H

#include <glib.h>

typedef struct fake_root FakeRoot; /* for g_autoptr */
struct fake_root {
  char *path;
};

FakeRoot *fake_root_new(void);
/* With all that is in it. */
void fake_root_free(FakeRoot *root);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FakeRoot, fake_root_free)

/* A file with that text, and the folders above it. */
void fake_file(FakeRoot *root, const char *path, const char *text);
void fake_bytes(FakeRoot *root, const char *path, const void *bytes, size_t size);
/* A link to `to`, a path below the root too. */
void fake_link(FakeRoot *root, const char *path, const char *to);

/* A machine of two NUMA nodes with two processors each. */
void fake_two_nodes(FakeRoot *root);

struct fake_pci {
  const char *path; /* "pci0000:00/0000:00:01.0/0000:01:00.0": that device and the bridges above it */
  unsigned vendor, device, class; /* class with its interface: 0x030200 */
  unsigned from_bus, to_bus;      /* below it; 0: it is no bridge */
  int node;
  const char *driver; /* may be NULL */
};
void fake_pci_device(FakeRoot *root, const struct fake_pci *pci);

#endif
