/* Random trials: how many, and from which seed. */
#ifndef TRIAL_H
#define TRIAL_H

#include <glib.h>
#include <unistd.h>

/* DISTMIND_ROUNDS; 3. */
static inline guint trial_rounds(void)
{
  const char *text = g_getenv("DISTMIND_ROUNDS");
  return text && *text ? (guint)g_ascii_strtoull(text, NULL, 10) : 3;
}

/* DISTMIND_SEED; else drawn, for the messages to tell. */
static inline guint32 trial_seed(void)
{
  const char *text = g_getenv("DISTMIND_SEED");
  return text && *text ? (guint32)g_ascii_strtoull(text, NULL, 10)
                       : (guint32)((guint64)g_get_real_time() ^ (guint64)getpid()) % 1000000;
}

#endif
