/* What an experiment was told, before it is understood: the values given for one system, each with where it
 * came from.
 *
 * Later layers replace earlier ones key by key: the file's general sections, then its [system X], then --set.
 * What no layer gives is the schema's default. Every name is checked here, so an unknown key is found
 * whatever the system. */
#ifndef DM_EXPERIMENT_LAYERS_H
#define DM_EXPERIMENT_LAYERS_H

#include "harness/keyfile.h"

struct given {
  const char *section; /* of the schema */
  char *key, *value;
  char *file;     /* the experiment's path, or "--set SECTION.KEY=VALUE" as typed */
  unsigned line;  /* 0 of --set */
  gboolean typed; /* by --set: relative paths are the working directory's first */
};

struct layers {
  const char *path; /* of the experiment; the keyfile's */
  GPtrArray *given; /* of struct given *, in the order of first appearance */
};

/* system "" = no [system X]. sets may be NULL. The keyfile must outlive the layers. NULL + DM_ERROR_INPUT. */
struct layers *layers_new(const struct keyfile *keyfile, const char *system, char **sets, GError **error);
void layers_free(struct layers *layers);
typedef struct layers Layers; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Layers, layers_free)

/* "SECTION.KEY" of a name as --set takes it (a key that one section alone has may stand without it). file:
 * for the message. NULL + DM_ERROR_INPUT: no such key. Free with g_free. */
char *layers_key(const char *file, const char *name, GError **error);

/* Text that may stand for a value in an experiment file, and so may be one of --set: UTF-8 without "#", with
 * which a comment begins, and without control characters, of which a line end is one. */
gboolean layers_is_plain(const char *text);
/* The same of an option that becomes a --set, by the name that the user typed ("--trace"); value NULL: not
 * given. FALSE + DM_ERROR_INPUT. */
gboolean layers_option_check(const char *option, const char *value, GError **error);

/* NULL where the default stands. */
const struct given *layers_find(const struct layers *layers, const char *section, const char *key);
/* DM_ERROR_INPUT at the place where section.key was given; at the file where it was not. Always FALSE. */
gboolean layers_error(const struct layers *layers, const char *section, const char *key, GError **error,
                      const char *format, ...) G_GNUC_PRINTF(5, 6);
/* The same for one given value, or for the file if given is NULL. */
gboolean given_error(const struct layers *layers, const struct given *given, GError **error,
                     const char *format, ...) G_GNUC_PRINTF(4, 5);

#endif
