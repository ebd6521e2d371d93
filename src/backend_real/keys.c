/* Files of CURVE keys; see keys.h. */
#include "backend_real/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "core/error.h"

enum { KEY_CHARACTERS = KEY_TEXT - 1, KEY_BYTES = 32, FILE_BYTES_MAX = 4096 };

gboolean key_pair_generate(struct key_pair *pair, GError **error)
{
  if (zmq_has("curve") && zmq_curve_keypair(pair->public_key, pair->secret_key) == 0)
    return TRUE;
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "this libzmq was built without CURVE: no keys can be made");
  return FALSE;
}

/* --- writing
 * ------------------------------------------------------------------------------------------------------*/

/* An existing file is never touched: of two who write one name, one fails. */
static gboolean write_new(const char *path, int mode, const char *text, GError **error)
{
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0 && errno == EEXIST)
    return input_error(error, path, 0, "exists already; keys are never overwritten");
  if (fd < 0)
    return input_error(error, path, 0, "cannot be written: %s", g_strerror(errno));
  size_t length = strlen(text);
  ssize_t written = write(fd, text, length);
  int failure = written < 0 ? errno : (size_t)written < length ? ENOSPC : 0;
  if (!failure && (fchmod(fd, (mode_t)mode) != 0 || fsync(fd) != 0)) /* whatever the umask */
    failure = errno;
  if (close(fd) != 0 && !failure)
    failure = errno;
  if (!failure)
    return TRUE;
  unlink(path);
  g_set_error(error, DM_ERROR, DM_ERROR_FAILED, "%s: %s", path, g_strerror(failure));
  return FALSE;
}

char *key_pair_public_text(const struct key_pair *pair)
{
  return g_strdup_printf("# Public key of a DistMind control plane: safe to give away.\n%s\n",
                         pair->public_key);
}

char *key_pair_secret_text(const struct key_pair *pair)
{
  return g_strdup_printf(
      "# Key pair of a DistMind control plane, the public key first: keep this file to yourself.\n%s\n%s\n",
      pair->public_key, pair->secret_key);
}

void key_text_free(char *text)
{
  if (text)
    explicit_bzero(text, strlen(text));
  g_free(text);
}

gboolean key_pair_write(const struct key_pair *pair, const char *name, GError **error)
{
  g_autofree char *secret_path = g_strconcat(name, ".secret", NULL);
  g_autofree char *public_path = g_strconcat(name, ".pub", NULL);
  g_autofree char *public_text = key_pair_public_text(pair);
  char *secret_text = key_pair_secret_text(pair);
  gboolean good = write_new(secret_path, 0600, secret_text, error);
  key_text_free(secret_text);
  if (!good)
    return FALSE;
  if (write_new(public_path, 0644, public_text, error))
    return TRUE;
  unlink(secret_path);
  return FALSE;
}

/* --- reading
 * ------------------------------------------------------------------------------------------------------*/

/* The text with its end in `text`; what is refused here is refused before a byte is read. */
static gboolean read_file(const char *path, gboolean secret, char text[FILE_BYTES_MAX + 1], GError **error)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return input_error(error, path, 0, "cannot be read: %s", g_strerror(errno));
  struct stat status;
  gboolean good = fstat(fd, &status) == 0;
  size_t length = 0;
  if (!good)
    input_error(error, path, 0, "cannot be read: %s", g_strerror(errno));
  else if (!S_ISREG(status.st_mode) || status.st_size > FILE_BYTES_MAX)
    good = input_error(error, path, 0, "expected a key file, a regular file of at most %d bytes",
                       FILE_BYTES_MAX);
  else if (secret && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    good = input_error(error, path, 0, "others may read this secret (mode %04o); `chmod 600` it",
                       (unsigned)status.st_mode & 07777);
  while (good && length < FILE_BYTES_MAX) {
    ssize_t more = read(fd, text + length, FILE_BYTES_MAX - length);
    if (more < 0 && errno != EINTR)
      good = input_error(error, path, 0, "cannot be read: %s", g_strerror(errno));
    else if (more == 0)
      break;
    else if (more > 0)
      length += (size_t)more;
  }
  close(fd);
  text[length] = '\0';
  if (good && strlen(text) != length)
    good = input_error(error, path, 0, "a NUL byte in a key file");
  return good;
}

/* A comment opens with "# ": a key may hold the sign, but no blank. */
static gboolean is_comment(const char *line, size_t length)
{
  return length == 0 || (line[0] == '#' && (length == 1 || line[1] == ' '));
}

static gboolean is_key(const char *line, size_t length, char key[KEY_TEXT])
{
  uint8_t binary[KEY_BYTES];
  if (length != KEY_CHARACTERS)
    return FALSE;
  memcpy(key, line, length);
  key[length] = '\0';
  /* Of characters that are not of the alphabet the decoder knows some only by the code that they give. */
  char again[KEY_TEXT];
  gboolean good =
      zmq_z85_decode(binary, key) && zmq_z85_encode(again, binary, sizeof binary) && strcmp(again, key) == 0;
  explicit_bzero(binary, sizeof binary);
  explicit_bzero(again, sizeof again);
  return good;
}

/* Exactly `count` lines with a key each. Errors never show what was found: it may be half a secret. */
static gboolean parse_keys(const char *path, const char *text, guint count, char (*keys)[KEY_TEXT],
                           GError **error)
{
  guint found = 0;
  unsigned number = 1;
  for (const char *line = text; *line; number++) {
    size_t length = strcspn(line, "\n");
    if (!is_comment(line, length)) {
      if (found == count)
        return input_error(error, path, number, "expected the end of the file after %u key%s", count,
                           count == 1 ? "" : "s");
      if (!is_key(line, length, keys[found]))
        return input_error(error, path, number,
                           "expected a key of %d Z85 characters, found %zu characters that are none",
                           KEY_CHARACTERS, length);
      found++;
    }
    line += length + (line[length] == '\n');
  }
  if (found == count)
    return TRUE;
  return input_error(error, path, number, "expected %u key%s, found %u at the end of the file", count,
                     count == 1 ? "" : "s", found);
}

gboolean key_pair_read(const char *path, struct key_pair *pair, GError **error)
{
  char text[FILE_BYTES_MAX + 1], keys[2][KEY_TEXT] = {{0}}, derived[KEY_TEXT] = {0};
  gboolean good = read_file(path, TRUE, text, error) && parse_keys(path, text, 2, keys, error);
  if (good && (zmq_curve_public(derived, keys[1]) != 0 || strcmp(derived, keys[0]) != 0))
    good = input_error(error, path, 0, "the two keys are no pair");
  if (good) {
    memcpy(pair->public_key, keys[0], KEY_TEXT);
    memcpy(pair->secret_key, keys[1], KEY_TEXT);
  }
  explicit_bzero(text, sizeof text);
  explicit_bzero(keys, sizeof keys);
  return good;
}

gboolean public_key_read(const char *path, char key[KEY_TEXT], GError **error)
{
  char text[FILE_BYTES_MAX + 1], keys[1][KEY_TEXT];
  if (!read_file(path, FALSE, text, error) || !parse_keys(path, text, 1, keys, error))
    return FALSE;
  memcpy(key, keys[0], KEY_TEXT);
  return TRUE;
}
