/* `keygen`: a new pair of keys for the control plane. */
#include <stdio.h>
#include <string.h>

#include "backend_real/commands.h"
#include "backend_real/keys.h"
#include "core/error.h"

static gboolean keygen(int argc, char **argv, GError **error)
{
  const GOptionEntry entries[] = {{NULL}};
  g_auto(GStrv) arguments = command_options(argc, argv, entries, error);
  if (!arguments || !command_arguments(argv, arguments, 1, 1, "NAME, the files' name without its end", error))
    return FALSE;
  g_autofree char *leaf = g_path_get_basename(arguments[0]);
  if (!*arguments[0] || g_str_has_suffix(arguments[0], "/") || g_str_equal(leaf, "."))
    return input_error(error, NULL, 0, "keygen: expected NAME, the files' name without its end, found \"%s\"",
                       arguments[0]);
  struct key_pair pair;
  if (!key_pair_generate(&pair, error))
    return FALSE;
  gboolean good = key_pair_write(&pair, arguments[0], error);
  if (good)
    printf("%s.secret  both keys; stays on the machine that uses it\n%s.pub     the public key: %s\n",
           arguments[0], arguments[0], pair.public_key);
  explicit_bzero(&pair, sizeof pair);
  return good;
}

const struct command command_keygen = {
    .name = "keygen",
    .summary = "make a pair of keys for the control plane",
    .run = keygen,
    .help =
        "keygen NAME\n\n"
        "Writes a new pair of keys: NAME.secret, which only its owner may read, and NAME.pub. Existing "
        "files\n"
        "are never overwritten.\n\n"
        "Every process of a cluster has a pair. The controller needs a folder with the .pub files of those\n"
        "who may connect; it looks there at each connection, so a key is added or taken away by copying or\n"
        "deleting its file. Everyone else needs the controller's .pub file, and so knows whom it talks to.\n"
        "Without keys the controller listens on loopback only.\n\n"
        "examples:\n"
        "  mkdir -p keys/authorized\n"
        "  distmind-real keygen keys/controller\n"
        "  distmind-real keygen keys/gpu-0          # on the machine that will use it\n"
        "  cp keys/gpu-0.pub keys/authorized/       # on the controller's machine: let it in\n",
};
