/* Cuts a process off: takes copies of its sockets and shuts the connections down. See cluster.h. */
#include "cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static gboolean shut(int socket)
{
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  return getpeername(socket, (struct sockaddr *)&peer, &size) == 0 && peer.ss_family == AF_INET &&
         shutdown(socket, SHUT_RDWR) == 0;
}

int process_cut(pid_t pid)
{
  int count = 0, handle = (int)syscall(SYS_pidfd_open, pid, 0);
  g_autofree char *folder = g_strdup_printf("/proc/%d/fd", (int)pid);
  g_autoptr(GDir) dir = handle < 0 ? NULL : g_dir_open(folder, 0, NULL);
  for (const char *name = dir ? g_dir_read_name(dir) : NULL; name && count >= 0;
       name = g_dir_read_name(dir)) {
    g_autofree char *path = g_build_filename(folder, name, NULL), *what = g_file_read_link(path, NULL);
    if (!what || !g_str_has_prefix(what, "socket:"))
      continue;
    int mine = (int)syscall(SYS_pidfd_getfd, handle, atoi(name), 0);
    if (mine < 0 && errno == EPERM)
      count = -1;
    else if (mine >= 0)
      count += shut(mine);
    if (mine >= 0)
      close(mine);
  }
  if (handle >= 0)
    close(handle);
  return count;
}
