/* Small facts out of /sys and /proc. Every call takes the root that these stand under ("" = this machine's;
 * tests give a folder of their own) and a path below it. Nothing here blocks, whatever lies there: only
 * regular files are read, of at most SYSFS_BYTES_MAX, and folders up to SYSFS_NAMES_MAX names. */
#ifndef DM_SYSFS_H
#define DM_SYSFS_H

#include <glib.h>
#include <stdint.h>

#define SYSFS_BYTES_MAX 65536
#define SYSFS_NAMES_MAX 4096

/* A file's text, made valid UTF-8, without white space at its ends; NULL: no such file, not readable. Free
 * with g_free. */
char *sysfs_text(const char *root, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A file that holds one whole decimal number, perhaps with a unit after it ("1024 kB" is 1024). */
gboolean sysfs_number(const char *root, int64_t *value, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* A folder's names, "a2" before "a10"; never NULL. Free with g_strfreev. */
char **sysfs_names(const char *root, const char *format, ...) G_GNUC_PRINTF(2, 3);
gboolean sysfs_exists(const char *root, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Where a path really lies, links followed, as the file system has it (with the root); NULL: nowhere. */
char *sysfs_real_path(const char *root, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* NUMA node of a PCI device; -1: unknown. */
int sysfs_pci_numa(const char *root, const char *pci);
/* Is a PCI address, DOMAIN:BUS:DEVICE.FUNCTION. */
gboolean sysfs_is_pci(const char *name);
/* The last PCI address ("0000:17:00.0") among the names of a path; "" if there is none, or it is longer than
 * `size` holds. */
void sysfs_pci_of_path(const char *path, char *pci, size_t size);

#endif
