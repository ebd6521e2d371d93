/* Files of result databases; see store_files.h. */
#include "harness/store_files.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"

#define COPY_BYTES (1 << 20)

/* Of the whole path; SQLite's own limit, of which it does not say that it was met. */
#define SQLITE_PATH_MOST 500

char *store_sqlite_path(const char *path)
{
  return g_path_is_absolute(path) ? g_strdup(path) : g_strconcat("./", path, NULL);
}

gboolean store_open_file(const char *path, int flags, sqlite3 **db, GError **error)
{
  g_autofree char *name = store_sqlite_path(path), *whole = g_canonicalize_filename(path, NULL);
  if (sqlite3_open_v2(name, db, flags, NULL) == SQLITE_OK)
    return TRUE;
  const char *hint = strlen(whole) > SQLITE_PATH_MOST ? "; SQLite takes no path of over 500 bytes" : "";
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s%s", sqlite3_errmsg(*db), hint);
  return FALSE;
}

/* Left beside another file of that name, journals would spoil it. */
static void journals_remove(const char *path)
{
  static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
  for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
    g_autofree char *name = g_strconcat(path, suffixes[i], NULL);
    g_unlink(name);
  }
}

void store_remove(const char *path)
{
  g_unlink(path);
  journals_remove(path);
}

gboolean store_rename(const char *partial, const char *path, GError **error)
{
  journals_remove(path);
  if (g_rename(partial, path) == 0)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot rename to %s: %s", partial, path,
              g_strerror(errno));
  return FALSE;
}

static gboolean copy_bytes(int from, int to)
{
  g_autofree char *bytes = g_malloc(COPY_BYTES);
  for (;;) {
    ssize_t count = read(from, bytes, COPY_BYTES);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return count == 0 && fsync(to) == 0;
    for (ssize_t done = 0; done < count;) {
      ssize_t written = write(to, bytes + done, (size_t)(count - done));
      if (written < 0 && errno != EINTR)
        return FALSE;
      done += MAX(written, 0);
    }
  }
}

gboolean store_copy(const char *from, const char *path, GError **error)
{
  g_autofree char *partial = g_strconcat(path, ".partial", NULL);
  int in = open(from, O_RDONLY | O_CLOEXEC);
  int out = in < 0 ? -1 : open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  gboolean good = out >= 0 && copy_bytes(in, out);
  int why = errno;
  if (in >= 0)
    close(in);
  if (out >= 0 && close(out) != 0 && good) {
    good = FALSE;
    why = errno;
  }
  if (good)
    return store_rename(partial, path, error);
  g_unlink(partial);
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: cannot copy to %s: %s", from, partial, g_strerror(why));
  return FALSE;
}
