/* Keys of the control plane: CURVE pairs in files.
 *
 * NAME.secret (mode 0600: both keys) and NAME.pub (the public one), each one Z85 line after a comment.
 * `distmind-real keygen` writes them; a folder of .pub files says who may connect. */
#ifndef DM_KEYS_H
#define DM_KEYS_H

#include <glib.h>

#define KEY_TEXT 41 /* Z85 of 32 bytes, with its end */

struct key_pair {
  char public_key[KEY_TEXT], secret_key[KEY_TEXT];
};

gboolean key_pair_generate(struct key_pair *pair, GError **error);
/* What stands in the two files; ended by key_text_free, which wipes it. */
char *key_pair_public_text(const struct key_pair *pair);
char *key_pair_secret_text(const struct key_pair *pair);
void key_text_free(char *text);
/* Writes NAME.secret and NAME.pub; refuses to overwrite. Nothing is left behind on failure. */
gboolean key_pair_write(const struct key_pair *pair, const char *name, GError **error);
/* DM_ERROR_INPUT with file and line; a secret that others may read is refused. */
gboolean key_pair_read(const char *path, struct key_pair *pair, GError **error);
gboolean public_key_read(const char *path, char key[KEY_TEXT], GError **error);

#endif
