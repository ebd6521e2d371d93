/* Processors, memory, huge pages, limits, as the kernel tells; see doctor.h. */
#include <linux/capability.h>
#include <string.h>

#include "backend_real/doctor_parts.h"
#include "backend_real/sysfs.h"

/* The text after "KEY:" or "KEY" and blanks at the beginning of a line; NULL: no such line. */
static char *line_after(const char *text, const char *key)
{
  g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
  for (guint i = 0; lines[i]; i++)
    if (g_str_has_prefix(lines[i], key)) {
      const char *rest = lines[i] + strlen(key);
      return g_strstrip(g_strdup(rest + strspn(rest, " \t:")));
    }
  return NULL;
}

/* "KEY: N kB" in bytes; 0: no such line, or not believable. */
static uint64_t kilobytes(const char *text, const char *key)
{
  g_autofree char *value = line_after(text, key);
  uint64_t number = value ? g_ascii_strtoull(value, NULL, 10) : 0;
  return number <= G_MAXUINT64 / 1024 ? number * 1024 : 0;
}

static uint64_t count_at(const char *root, const char *folder, const char *file)
{
  int64_t count = 0;
  return sysfs_number(root, &count, "%s/%s", folder, file) && count > 0 ? (uint64_t)count : 0;
}

/* --- memory
 * ------------------------------------------------------------------------------------------------------*/

static gboolean number_after(const char *name, const char *prefix, const char *suffix, uint64_t *number)
{
  if (!g_str_has_prefix(name, prefix) || !g_str_has_suffix(name, suffix) ||
      strlen(name) <= strlen(prefix) + strlen(suffix))
    return FALSE;
  g_autofree char *digits = g_strndup(name + strlen(prefix), strlen(name) - strlen(prefix) - strlen(suffix));
  return g_ascii_string_to_unsigned(digits, 10, 0, G_MAXUINT32, number, NULL);
}

static void read_nodes(struct doctor_host *host, const char *root)
{
  g_auto(GStrv) names = sysfs_names(root, "/sys/devices/system/node");
  for (guint i = 0; names[i]; i++) {
    uint64_t id;
    if (!number_after(names[i], "node", "", &id))
      continue;
    struct doctor_node node = {.id = (uint32_t)id};
    node.processors = sysfs_text(root, "/sys/devices/system/node/%s/cpulist", names[i]);
    g_autofree char *memory = sysfs_text(root, "/sys/devices/system/node/%s/meminfo", names[i]);
    g_autofree char *total = g_strdup_printf("Node %u MemTotal", node.id);
    g_autofree char *left = g_strdup_printf("Node %u MemFree", node.id);
    node.bytes = kilobytes(memory, total);
    node.free_bytes = kilobytes(memory, left);
    g_array_append_val(host->nodes, node);
  }
}

static void read_pools(struct doctor_host *host, const char *root)
{
  g_auto(GStrv) names = sysfs_names(root, "/sys/kernel/mm/hugepages");
  for (guint i = 0; names[i]; i++) {
    uint64_t kib;
    if (!number_after(names[i], "hugepages-", "kB", &kib))
      continue;
    g_autofree char *folder = g_strconcat("/sys/kernel/mm/hugepages/", names[i], NULL);
    struct doctor_pool pool = {kib * 1024, count_at(root, folder, "nr_hugepages"),
                               count_at(root, folder, "free_hugepages")};
    g_array_append_val(host->pools, pool);
  }
}

/* The word in brackets. */
static char *read_transparent(const char *root)
{
  g_autofree char *text = sysfs_text(root, "/sys/kernel/mm/transparent_hugepage/enabled");
  const char *open = text ? strchr(text, '[') : NULL, *close = open ? strchr(open, ']') : NULL;
  return close ? g_strndup(open + 1, close - open - 1) : NULL;
}

/* Control groups of version 2, else 1, where no limit is a number near 2^63. */
static uint64_t read_bytes_max(const char *root)
{
  int64_t bytes;
  if (sysfs_number(root, &bytes, "/sys/fs/cgroup/memory.max") ||
      sysfs_number(root, &bytes, "/sys/fs/cgroup/memory/memory.limit_in_bytes"))
    return bytes > 0 && bytes < G_MAXINT64 / 2 ? (uint64_t)bytes : DOCTOR_UNLIMITED;
  return DOCTOR_UNLIMITED;
}

static void read_memory(struct doctor_host *host, const char *root)
{
  g_autofree char *memory = sysfs_text(root, "/proc/meminfo");
  host->bytes = kilobytes(memory, "MemTotal");
  host->available = kilobytes(memory, "MemAvailable");
  host->bytes_max = read_bytes_max(root);
  host->transparent = read_transparent(root);
  host->nodes = g_array_new(FALSE, FALSE, sizeof(struct doctor_node));
  host->pools = g_array_new(FALSE, FALSE, sizeof(struct doctor_pool));
  read_nodes(host, root);
  read_pools(host, root);
}

/* --- limits
 * ------------------------------------------------------------------------------------------------------*/

static gboolean limit_of(const char *word, uint64_t *value)
{
  if (word && strcmp(word, "unlimited") == 0) {
    *value = DOCTOR_UNLIMITED;
    return TRUE;
  }
  return word && g_ascii_string_to_unsigned(word, 10, 0, G_MAXUINT64, value, NULL);
}

/* "KEY   SOFT   HARD   UNIT" */
static struct doctor_limit read_limit(const char *limits, const char *key)
{
  struct doctor_limit limit = {FALSE};
  g_autofree char *values = line_after(limits, key);
  g_auto(GStrv) words = g_strsplit_set(values ? values : "", " \t", -1);
  const char *found[2] = {NULL, NULL};
  for (guint i = 0, n = 0; words[i] && n < 2; i++)
    if (*words[i])
      found[n++] = words[i];
  limit.known = limit_of(found[0], &limit.soft) && limit_of(found[1], &limit.hard);
  return limit;
}

static void read_limits(struct doctor_host *host, const char *root)
{
  g_autofree char *limits = sysfs_text(root, "/proc/self/limits");
  g_autofree char *status = sysfs_text(root, "/proc/self/status");
  g_autofree char *capabilities = line_after(status, "CapEff");
  host->memlock = read_limit(limits, "Max locked memory");
  host->files = read_limit(limits, "Max open files");
  host->ipc_lock = capabilities && (g_ascii_strtoull(capabilities, NULL, 16) >> CAP_IPC_LOCK & 1);
  host->allowed = line_after(status, "Cpus_allowed_list");
}

/* --- all
 * ---------------------------------------------------------------------------------------------------------*/

/* Group 0's way stands for all: they share the kernel's default. */
static char *read_iommu(const char *root)
{
  g_auto(GStrv) groups = sysfs_names(root, "/sys/kernel/iommu_groups");
  if (!groups[0])
    return NULL;
  g_autofree char *type = sysfs_text(root, "/sys/kernel/iommu_groups/%s/type", groups[0]);
  return g_strdup(type && strcmp(type, "identity") == 0 ? "passthrough" : "translated");
}

void doctor_host_read(struct doctor_host *host, const char *root)
{
  g_autofree char *processors = sysfs_text(root, "/proc/cpuinfo");
  host->kernel = sysfs_text(root, "/proc/sys/kernel/osrelease");
  host->processor = line_after(processors, "model name");
  host->online = sysfs_text(root, "/sys/devices/system/cpu/online");
  host->iommu = read_iommu(root);
  read_memory(host, root);
  read_limits(host, root);
}

void doctor_host_clear(struct doctor_host *host)
{
  for (guint i = 0; i < host->nodes->len; i++)
    g_free(g_array_index(host->nodes, struct doctor_node, i).processors);
  g_array_unref(host->nodes);
  g_array_unref(host->pools);
  g_free(host->kernel);
  g_free(host->processor);
  g_free(host->online);
  g_free(host->allowed);
  g_free(host->transparent);
  g_free(host->iommu);
}
