/* Key files: there and back, never overwritten, never readable by others, and every malformed one refused
 * with its line. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../harness/temporary.h"
#include "backend_real/keys.h"
#include "core/error.h"

/* A folder and the name of a pair in it. */
struct place {
  char *folder, *name, *secret, *public;
};

static struct place place_new(void)
{
  struct place p = {.folder = g_dir_make_tmp("distmind-test-XXXXXX", NULL)};
  cr_assert(p.folder);
  p.name = g_build_filename(p.folder, "gpu-0", NULL);
  p.secret = g_strconcat(p.name, ".secret", NULL);
  p.public = g_strconcat(p.name, ".pub", NULL);
  return p;
}

static void place_clear(struct place *p)
{
  g_unlink(p->secret);
  g_unlink(p->public);
  cr_assert_eq(g_rmdir(p->folder), 0, "something was left behind");
  g_free(p->folder);
  g_free(p->name);
  g_free(p->secret);
  g_free(p->public);
}

static mode_t mode_of(const char *path)
{
  struct stat status;
  cr_assert_eq(stat(path, &status), 0);
  return status.st_mode & 07777;
}

Test(keys, there_and_back)
{
  struct place p = place_new();
  struct key_pair pair, again;
  char public_key[KEY_TEXT];
  g_autoptr(GError) error = NULL;
  umask(0);
  cr_assert(key_pair_generate(&pair, &error));
  cr_assert(key_pair_write(&pair, p.name, &error), "%s", error ? error->message : "");
  cr_assert_eq(mode_of(p.secret), 0600);
  cr_assert_eq(mode_of(p.public), 0644);
  cr_assert(key_pair_read(p.secret, &again, &error), "%s", error ? error->message : "");
  cr_assert(public_key_read(p.public, public_key, &error), "%s", error ? error->message : "");
  cr_assert_str_eq(again.public_key, pair.public_key);
  cr_assert_str_eq(again.secret_key, pair.secret_key);
  cr_assert_str_eq(public_key, pair.public_key);
  cr_assert(key_pair_generate(&again, &error));
  cr_assert_str_neq(again.secret_key, pair.secret_key);
  place_clear(&p);
}

/* Whichever of the two files is there already, it stays as it is, and the other is not left behind. */
Test(keys, nothing_is_overwritten)
{
  struct place p = place_new();
  struct key_pair pair;
  cr_assert(key_pair_generate(&pair, NULL));
  const char *existing[] = {p.secret, p.public}, *other[] = {p.public, p.secret};
  for (int i = 0; i < 2; i++) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    cr_assert(g_file_set_contents(existing[i], "mine", -1, NULL));
    cr_assert_not(key_pair_write(&pair, p.name, &error));
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert(strstr(error->message, "exists already"));
    cr_assert(g_file_get_contents(existing[i], &text, NULL, NULL));
    cr_assert_str_eq(text, "mine");
    cr_assert_not(g_file_test(other[i], G_FILE_TEST_EXISTS));
    g_unlink(existing[i]);
  }
  place_clear(&p);
}

Test(keys, secret_that_others_may_read)
{
  struct place p = place_new();
  struct key_pair pair;
  cr_assert(key_pair_generate(&pair, NULL));
  cr_assert(key_pair_write(&pair, p.name, NULL));
  const mode_t open_modes[] = {0640, 0604, 0660, 0610, 0601};
  for (size_t i = 0; i < G_N_ELEMENTS(open_modes); i++) {
    g_autoptr(GError) error = NULL;
    cr_assert_eq(chmod(p.secret, open_modes[i]), 0);
    cr_assert_not(key_pair_read(p.secret, &pair, &error));
    cr_assert(strstr(error->message, "others may read this secret"));
  }
  place_clear(&p);
}

#define GOOD "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7" /* public key of the ZeroMQ manual's example */

Test(keys, malformed_public_keys)
{
  static const struct {
    const char *text, *error;
  } cases[] = {
      {"", ":1: expected 1 key, found 0 at the end of the file"},
      {"# only a comment\n", ":2: expected 1 key, found 0 at the end of the file"},
      {"# c\n" GOOD "\n" GOOD "\n", ":3: expected the end of the file after 1 key"},
      {"# c\nshort\n", ":2: expected a key of 40 Z85 characters, found 5 characters that are none"},
      {GOOD "x\n", ":1: expected a key of 40 Z85 characters, found 41 characters that are none"},
      {GOOD "\r\n", ":1: expected a key of 40 Z85 characters, found 41 characters that are none"},
      /* 40 characters: a blank, a character of no alphabet, bytes past ASCII, five that overflow 32 bits */
      {" q:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", ":1: expected a key of 40"},
      {"\"q:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", ":1: expected a key of 40"},
      {"\xffq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", ":1: expected a key of 40"},
      {"#####>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7", ":1: expected a key of 40"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    char key[KEY_TEXT];
    char *path = temporary_file("a.pub", cases[i].text, strlen(cases[i].text));
    cr_assert_not(public_key_read(path, key, &error), "case %zu", i);
    cr_assert(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_assert(strstr(error->message, cases[i].error), "case %zu: %s", i, error->message);
    temporary_remove(path);
  }
}

/* A key may open with the sign of a comment: "# " does, "#x" does not. */
Test(keys, key_that_looks_like_a_comment)
{
  static const char text[] = "#\n# a key:\n\n#0000#00000000000000000000000000000000#0\n";
  char *path = temporary_file("a.pub", text, strlen(text)), key[KEY_TEXT];
  g_autoptr(GError) error = NULL;
  cr_assert_not(public_key_read(path, key, &error));
  cr_assert(strstr(error->message, ":4: "), "%s", error->message); /* 5 characters "#0000" are over 2^32 */
  g_clear_error(&error);
  static const char good[] = "0#000000000000000000000000000000000000#0\n";
  cr_assert(g_file_set_contents(path, good, -1, NULL));
  cr_assert(public_key_read(path, key, &error), "%s", error ? error->message : "");
  temporary_remove(path);
}

Test(keys, what_is_no_key_file)
{
  g_autoptr(GError) error = NULL;
  char key[KEY_TEXT];
  cr_assert_not(public_key_read("/does/not/exist.pub", key, &error));
  g_clear_error(&error);
  cr_assert_not(public_key_read("/tmp", key, &error));
  cr_assert(strstr(error->message, "expected a key file"));
  g_clear_error(&error);
  cr_assert_not(public_key_read("/dev/zero", key, &error)); /* would never end */
  g_clear_error(&error);
  g_autofree char *large = g_strnfill(5000, '\n');
  char *path = temporary_file("a.pub", large, 5000);
  cr_assert_not(public_key_read(path, key, &error));
  g_clear_error(&error);
  static const char nul[] = GOOD "\0\n";
  cr_assert(g_file_set_contents(path, nul, sizeof nul - 1, NULL));
  cr_assert_not(public_key_read(path, key, &error));
  cr_assert(strstr(error->message, "NUL"));
  temporary_remove(path);
}

/* Errors about secrets show nothing of them. */
Test(keys, malformed_secrets)
{
  struct key_pair pair, other, read;
  cr_assert(key_pair_generate(&pair, NULL) && key_pair_generate(&other, NULL));
  g_autofree char *mixed = g_strdup_printf("%s\n%s\n", pair.public_key, other.secret_key);
  g_autofree char *alone = g_strdup_printf("%s\n", pair.secret_key);
  g_autofree char *longer = g_strdup_printf("%s\n%sx\n", pair.public_key, pair.secret_key);
  const struct {
    const char *text, *error;
  } cases[] = {
      {mixed, "the two keys are no pair"},
      {alone, "expected 2 keys, found 1"},
      {longer, ":2: expected a key of 40 Z85 characters, found 41"},
  };
  for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    char *path = temporary_file("a.secret", cases[i].text, strlen(cases[i].text));
    cr_assert_eq(chmod(path, 0600), 0);
    cr_assert_not(key_pair_read(path, &read, &error));
    cr_assert(strstr(error->message, cases[i].error), "%s", error->message);
    cr_assert_not(strstr(error->message, pair.secret_key));
    temporary_remove(path);
  }
}
