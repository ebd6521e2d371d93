/* Any bytes as text that can be shown. */
#include "harness/shown.h"

#include <criterion/criterion.h>

#include "harness/gnuplot.h"
#include "harness/output_file.h"

Test(shown, is_utf8_in_one_line)
{
  static const struct {
    const char *text, *shown;
  } cases[] = {{"", ""},
               {"plain caf\xc3\xa9 \xe2\x82\xac", "plain caf\xc3\xa9 \xe2\x82\xac"},
               {"a\nb\tc\x1b[0m\x7f", "a\\x0ab\\x09c\\x1b[0m\\x7f"},
               {"\xc2\x85 next line", "\\xc2\\x85 next line"},
               {"\xff\xfe", "\\xff\\xfe"},
               {"cut \xf0\x9f\x92", "cut \\xf0\\x9f\\x92"},
               {"long \xc0\xaf", "long \\xc0\\xaf"},
               {"half \xed\xa0\x80", "half \\xed\\xa0\\x80"},
               {"\xfc", "\\xfc"}};
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *shown = shown_text(cases[i].text);
    cr_expect_str_eq(shown, cases[i].shown);
  }
}

/* Every byte string becomes valid text without control characters, and text that is that already stays. */
Test(shown, holds_for_any_bytes)
{
  g_autoptr(GRand) random = g_rand_new_with_seed(1);
  for (int round = 0; round < 20000; round++) {
    char text[16] = "";
    int length = g_rand_int_range(random, 0, sizeof text - 1);
    for (int i = 0; i < length; i++)
      text[i] = (char)g_rand_int_range(random, 1, 256);
    g_autofree char *shown = shown_text(text), *again = shown_text(shown);
    cr_assert(g_utf8_validate(shown, -1, NULL));
    cr_assert_str_eq(shown, again);
    for (const char *c = shown; *c; c++)
      cr_assert_not(g_ascii_iscntrl(*c));
  }
}

Test(shown, gnuplot_reads_labels_as_formats)
{
  g_autofree char *label = gnuplot_quote_label("100%s it's\n\xff"), *word = gnuplot_data_label("a\"b\\c%");
  cr_expect_str_eq(label, "'100%%s it''s \xef\xbf\xbd'");
  cr_expect_str_eq(word, "\"a b c%%\"");
}

Test(shown, default_files_stay_in_their_folder)
{
  g_autofree char *euros = g_strnfill(59, 'x'),
                  *many = g_strconcat(euros, euros, euros, "x\xe2\x82\xac\xe2\x82\xac", NULL);
  g_autofree char *cut = output_file_default(many, ".db");
  cr_expect(g_utf8_validate(cut, -1, NULL) && strlen(cut) <= strlen(OUTPUT_FOLDER "/.db") + 180, "%s", cut);
  static const char *const names[][2] = {{"../x", "results/_._x-sweep.db"},
                                         {"a b", "results/a b-sweep.db"},
                                         {"\xff", "results/\xef\xbf\xbd-sweep.db"},
                                         {"", "results/-sweep.db"}};
  for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *file = output_file_default(names[i][0], "-sweep.db");
    cr_expect_str_eq(file, names[i][1]);
  }
}
