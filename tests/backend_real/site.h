/* A folder with a hardware file, a profile and an experiment of one tiny model, in which tests run the
 * programs `calibrate` and `validate` as a user would. */
#ifndef SITE_H
#define SITE_H

#include "spawned.h"

typedef char Site; /* the folder's path */

/* Holds hardware/base.ini, profiles/tiny_gpu/tiny.csv and tiny.ini; site_free removes it with all that came
 * to it. */
Site *site_new(void);
void site_free(Site *site);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Site, site_free)
/* Makes the folders on the way to it. */
void site_write(const Site *site, const char *name, const char *text);

/* Runs a program with these words, in which "@" stands for the folder. */
Spawned *site_run(const Site *site, const char *program, const char *words);
/* Fails the test unless it ends well. */
void site_run_good(const Site *site, const char *program, const char *words);
/* Fails the test unless it is refused with this text (expect_refusal). */
void site_refused(const Site *site, const char *program, const char *words, const char *says);

/* The number behind the first such key in a text; fails the test where there is none. */
double number_after(const char *text, const char *key);

#endif
