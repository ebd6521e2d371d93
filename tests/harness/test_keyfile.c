/* The key-file reader, text reading and the nearest known word. */
#include <criterion/criterion.h>
#include <glib/gstdio.h>
#include <string.h>

#include "core/error.h"
#include "harness/keyfile.h"
#include "harness/nearest.h"
#include "harness/text_file.h"

static struct keyfile *parse(const char *text, GError **error)
{
  return keyfile_parse("k.ini", text, strlen(text), error);
}

Test(keyfile, keeps_order_lines_and_values)
{
  g_autoptr(GError) error = NULL;
  g_autoptr(Keyfile) keyfile =
      parse("\xef\xbb\xbf# first\r\n[one]\r\n a = 1 # note\n\nb=x = y\n[ system \t mps ]\nmodels.a-b_2 = 3",
            &error);
  cr_assert_not_null(keyfile, "%s", error ? error->message : "");
  cr_assert_eq(keyfile->sections->len, 2);
  const struct keyfile_section *one = keyfile_section(keyfile, "one");
  cr_assert_eq(one->line, 2);
  cr_assert_eq(one->entries->len, 2);
  cr_expect_str_eq(keyfile_entry(one, "a")->value, "1");
  cr_expect_eq(keyfile_entry(one, "a")->line, 3);
  cr_expect_str_eq(keyfile_entry(one, "b")->value, "x = y");
  const struct keyfile_section *system = keyfile_section(keyfile, "system mps");
  cr_assert_not_null(system);
  cr_expect_str_eq(keyfile_entry(system, "models.a-b_2")->value, "3");
  cr_expect_eq(keyfile_entry(system, "models.a-b_2")->line, 7);
  cr_expect_null(keyfile_section(keyfile, "two"));
  cr_expect_null(keyfile_entry(one, "c"));
}

Test(keyfile, empty_text_has_no_section)
{
  g_autoptr(Keyfile) keyfile = parse("# nothing but a comment", NULL);
  cr_assert_not_null(keyfile);
  cr_expect_eq(keyfile->sections->len, 0);
}

Test(keyfile, malformed_text_names_file_and_line)
{
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"a = 1", "k.ini:1: expected a [section] before the first key, found \"a\""},
      {"[a]\nb", "k.ini:2: expected key = value, found \"b\""},
      {"[a]\nb # = 2", "k.ini:2: expected key = value, found \"b\""},
      {"[a]\nb =", "k.ini:2: expected a value after \"b =\", found nothing"},
      {"[a]\nb = # none", "k.ini:2: expected a value after"},
      {"[a]\n= 1", "k.ini:2: expected a key of letters"},
      {"[a]\nb c = 1", "k.ini:2: expected a key of letters"},
      {"[a]\nb = 1\n\nb = 2", "k.ini:4: key \"b\" of [a] was given before, in line 2"},
      {"[a]\n[b]\n[a]", "k.ini:3: section [a] was given before, in line 1"},
      {"[system mps]\n[system  mps]", "k.ini:2: section [system mps] was given before, in line 1"},
      {"[a] x", "k.ini:1: expected nothing after \"]\", found \" x\""},
      {"[a]]", "k.ini:1: expected nothing after \"]\""},
      {"[a", "k.ini:1: expected [section], found \"[a\""},
      {"[]", "k.ini:1: expected a section's name"},
      {"[a*b]", "k.ini:1: expected a section's name"},
      {"[a]\nb = \x01", "k.ini:2: expected text, found control character 0x01"},
      {"[a]\nb = \xff\xfe", "k.ini:2: expected UTF-8 text, found byte 0xff"},
      {"[a]\nb = \xc3", "k.ini:2: expected UTF-8 text, found byte 0xc3"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Keyfile) keyfile = parse(cases[i].text, &error);
    cr_assert_null(keyfile, "case %zu was accepted", i);
    cr_expect(g_error_matches(error, DM_ERROR, DM_ERROR_INPUT));
    cr_expect(g_str_has_prefix(error->message, cases[i].message), "case %zu: %s", i, error->message);
    cr_expect_null(strchr(error->message, '\n'), "case %zu: more than one line", i);
  }
}

Test(keyfile, nul_byte_is_refused)
{
  static const char text[] = "[a]\nb = 1\nc = \0 2";
  g_autoptr(GError) error = NULL;
  cr_assert_null(keyfile_parse("k.ini", text, sizeof text - 1, &error));
  cr_expect_str_eq(error->message, "k.ini:3: expected UTF-8 text, found byte 0x00");
}

/* What repeats a piece of text past each limit. */
Test(keyfile, limits_hold)
{
  static const struct {
    int count;
    const char *piece, *message;
    gboolean numbered;
  } cases[] = {{KEYFILE_LINE_MAX + 1, "x", "expected at most 4096 bytes in a line", FALSE},
               {KEYFILE_SECTIONS_MAX + 1, "[s%d]\n", "expected at most 256 sections", TRUE},
               {KEYFILE_ENTRIES_MAX + 1, "k%d = 1\n", "expected at most 4096 keys", TRUE},
               {KEYFILE_BYTES_MAX, "#\n", "expected at most 1048576 bytes", FALSE}};
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autoptr(GString) text = g_string_new("[first]\n");
    g_autoptr(GError) error = NULL;
    for (int n = 0; n < cases[i].count; n++)
      if (cases[i].numbered)
        g_string_append_printf(text, i == 1 ? "[s%d]\n" : "k%d = 1\n", n);
      else
        g_string_append(text, cases[i].piece);
    cr_assert_null(parse(text->str, &error), "case %zu was accepted", i);
    cr_expect(strstr(error->message, cases[i].message), "case %zu: %s", i, error->message);
  }
}

Test(keyfile, files_that_cannot_be_read)
{
  g_autofree char *folder = g_dir_make_tmp("keyfile-XXXXXX", NULL);
  g_autoptr(GError) absent = NULL, directory = NULL, endless = NULL;
  cr_expect_null(keyfile_load("/nonexistent/k.ini", &absent));
  cr_expect(strstr(absent->message, "/nonexistent/k.ini: cannot open"), "%s", absent->message);
  cr_expect_null(keyfile_load(folder, &directory));
  cr_expect(strstr(directory->message, "cannot read"), "%s", directory->message);
  cr_expect_null(keyfile_load("/dev/zero", &endless));
  cr_expect(strstr(endless->message, "expected at most 1048576 bytes"), "%s", endless->message);
  g_rmdir(folder);
}

/* The recursive definition, for words short enough. */
static unsigned distance_by_definition(const char *a, const char *b)
{
  if (!*a || !*b)
    return (unsigned)(strlen(a) + strlen(b));
  unsigned replaced = distance_by_definition(a + 1, b + 1) + (*a != *b);
  unsigned inserted = distance_by_definition(a, b + 1) + 1;
  unsigned deleted = distance_by_definition(a + 1, b) + 1;
  return MIN(replaced, MIN(inserted, deleted));
}

Test(nearest, distance_equals_its_definition)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(7);
  for (int i = 0; i < 500; i++) {
    char word[2][8] = {{0}};
    for (int w = 0; w < 2; w++)
      for (int length = g_rand_int_range(random, 0, 7), n = 0; n < length; n++)
        word[w][n] = (char)g_rand_int_range(random, 'a', 'd');
    cr_assert_eq(edit_distance(word[0], word[1]), distance_by_definition(word[0], word[1]), "%s %s", word[0],
                 word[1]);
  }
}

Test(nearest, picks_the_first_of_the_nearest)
{
  const char *const known[] = {"zipf", "select", "speedup", "seed", NULL};
  const char *const none[] = {NULL};
  cr_expect_str_eq(nearest_word("sped", known), "seed");
  cr_expect_str_eq(nearest_word("zip", known), "zipf");
  cr_expect_str_eq(nearest_word("selected", known), "select");
  cr_expect_null(nearest_word("zipf", none));
}
