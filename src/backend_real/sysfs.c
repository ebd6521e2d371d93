/* /sys and /proc; see sysfs.h. */
#include "backend_real/sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *path_below(const char *root, const char *format, va_list arguments)
{
  g_autofree char *path = g_strdup_vprintf(format, arguments);
  return g_strconcat(root, path, NULL);
}

/* At most SYSFS_BYTES_MAX of a regular file. */
static char *read_file(const char *path)
{
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  struct stat status;
  if (fd < 0)
    return NULL;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return NULL;
  }
  g_autofree char *bytes = g_malloc(SYSFS_BYTES_MAX);
  size_t size = 0;
  ssize_t got = 0;
  while (size < SYSFS_BYTES_MAX && (got = read(fd, bytes + size, SYSFS_BYTES_MAX - size)) > 0)
    size += (size_t)got;
  close(fd);
  return got < 0 ? NULL : g_utf8_make_valid(bytes, (gssize)size);
}

static char *text_of(const char *path)
{
  char *text = read_file(path);
  return text ? g_strstrip(text) : NULL;
}

char *sysfs_text(const char *root, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *path = path_below(root, format, arguments);
  va_end(arguments);
  return text_of(path);
}

gboolean sysfs_number(const char *root, int64_t *value, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *path = path_below(root, format, arguments);
  va_end(arguments);
  g_autofree char *text = text_of(path);
  if (!text)
    return FALSE;
  char *end;
  errno = 0;
  int64_t number = g_ascii_strtoll(text, &end, 10);
  if (end == text || errno != 0 || (*end && !g_ascii_isspace(*end)))
    return FALSE;
  *value = number;
  return TRUE;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
  return strverscmp(*(char *const *)a, *(char *const *)b);
}

char **sysfs_names(const char *root, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *path = path_below(root, format, arguments);
  va_end(arguments);
  GPtrArray *names = g_ptr_array_new();
  g_autoptr(GDir) folder = g_dir_open(path, 0, NULL);
  for (const char *name; folder && names->len < SYSFS_NAMES_MAX && (name = g_dir_read_name(folder)) != NULL;)
    g_ptr_array_add(names, g_utf8_make_valid(name, -1));
  g_ptr_array_sort(names, compare_names);
  g_ptr_array_add(names, NULL);
  return (char **)g_ptr_array_free(names, FALSE);
}

gboolean sysfs_exists(const char *root, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *path = path_below(root, format, arguments);
  va_end(arguments);
  return access(path, F_OK) == 0;
}

char *sysfs_real_path(const char *root, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  g_autofree char *path = path_below(root, format, arguments);
  va_end(arguments);
  char *real = realpath(path, NULL);
  char *copy = g_strdup(real);
  free(real);
  return copy;
}

/* DOMAIN:BUS:DEVICE.FUNCTION in hexadecimal; the domain has four digits or more. */
gboolean sysfs_is_pci(const char *name)
{
  size_t domain = strspn(name, "0123456789abcdefABCDEF");
  const char *rest = name + domain;
  return domain >= 4 && strlen(rest) == 8 && rest[0] == ':' && g_ascii_isxdigit(rest[1]) &&
         g_ascii_isxdigit(rest[2]) && rest[3] == ':' && g_ascii_isxdigit(rest[4]) &&
         g_ascii_isxdigit(rest[5]) && rest[6] == '.' && g_ascii_isdigit(rest[7]);
}

void sysfs_pci_of_path(const char *path, char *pci, size_t size)
{
  g_auto(GStrv) names = g_strsplit(path, "/", -1);
  pci[0] = '\0';
  for (guint i = g_strv_length(names); i-- > 0;)
    if (sysfs_is_pci(names[i])) {
      if (strlen(names[i]) < size)
        g_strlcpy(pci, names[i], size);
      return;
    }
}

int sysfs_pci_numa(const char *root, const char *pci)
{
  int64_t node;
  gboolean known = *pci && sysfs_number(root, &node, "/sys/bus/pci/devices/%s/numa_node", pci);
  return known && node >= 0 && node <= G_MAXINT ? (int)node : -1;
}
