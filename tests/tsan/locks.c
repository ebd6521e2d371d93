/* GLib's locks, told to ThreadSanitizer. They work on futexes inside a library that is not instrumented, so
 * it would see no order between what they guard. Code under test is compiled with
 * -Dg_mutex_lock=tsan_mutex_lock and so on (flags, in this folder), and lands here. */
#include <glib.h>
#include <sanitizer/tsan_interface.h>

void tsan_mutex_lock(GMutex *mutex);
void tsan_mutex_unlock(GMutex *mutex);
gboolean tsan_mutex_trylock(GMutex *mutex);
void tsan_cond_wait(GCond *cond, GMutex *mutex);
gboolean tsan_cond_wait_until(GCond *cond, GMutex *mutex, gint64 end_time);

void tsan_mutex_lock(GMutex *mutex)
{
  g_mutex_lock(mutex);
  __tsan_acquire(mutex);
}

void tsan_mutex_unlock(GMutex *mutex)
{
  __tsan_release(mutex);
  g_mutex_unlock(mutex);
}

gboolean tsan_mutex_trylock(GMutex *mutex)
{
  gboolean locked = g_mutex_trylock(mutex);
  if (locked)
    __tsan_acquire(mutex);
  return locked;
}

void tsan_cond_wait(GCond *cond, GMutex *mutex)
{
  __tsan_release(mutex);
  g_cond_wait(cond, mutex);
  __tsan_acquire(mutex);
}

gboolean tsan_cond_wait_until(GCond *cond, GMutex *mutex, gint64 end_time)
{
  __tsan_release(mutex);
  gboolean signalled = g_cond_wait_until(cond, mutex, end_time);
  __tsan_acquire(mutex);
  return signalled;
}
