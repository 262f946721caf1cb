#include "sconce/io/csv.hpp"

#include <malloc.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include "catch.hpp"
#include "support/error_of.hpp"
#include "support/repeated.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"
#include "support/thread_seconds.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using sconce::io::CsvColumn;
using sconce::io::CsvOptions;
using sconce::io::CsvTable;
using sconce::io::read_csv;
using sconce::test::error_of;
using sconce::test::repeated;
using sconce::test::TempDir;
using sconce::test::thread_seconds;
using Names = std::vector<std::string>;

CsvOptions options_of_x() {
  return {.categories = {"x"}};
}

CsvTable read_text(const std::string& text, const CsvOptions& options = {}) {
  const TempDir folder;
  return read_csv(folder.write("table.csv", text), options);
}

// Strips the leading function name and file name, if present, from the error message.
std::string message_of(const std::string& text, const CsvOptions& options = {}) {
  const TempDir folder;
  const auto file = folder.write("table.csv", text);
  const std::string error = error_of([&] { read_csv(file, options); });
  const std::string begin = "sconce::io::read_csv: " + file.string() + ": ";
  return error.starts_with(begin) ? error.substr(begin.size()) : error;
}

bool same_values(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.is_floating_point() ? a.nan_to_num(-7).equal(b.nan_to_num(-7)) : a.equal(b));
}

}  // namespace

TEST_CASE("read_csv turns numeric columns into features and the chosen column into the target") {
  const auto table = read_text(
      "rooms,area,price\n"
      "3,71.5,1e5\n"
      "2, +50\t,-.5\n"
      "-4,1E-2,+7.\n",
      {.target = "area"});
  CHECK(table.features == Names{"rooms", "price"});
  CHECK(same_values(table.data, torch::tensor({{3., 1e5}, {2., -.5}, {-4., 7.}}, torch::kFloat)));
  CHECK(same_values(table.target, torch::tensor({{71.5}, {50.}, {0.01}}, torch::kFloat)));
  CHECK(table.data.is_contiguous());
  CHECK(table.skipped == 0);
  CHECK(table.columns.size() == 3);
  const auto all = read_text("a,b\n1,2\n");
  CHECK_FALSE(all.target.defined());
  CHECK(same_values(all.data, torch::tensor({{1., 2.}}, torch::kFloat)));
}

TEST_CASE("numbers in a CSV file are parsed as float64 and rounded to float32") {
  const auto table =
      read_text("x\n1.00000017881393432617187499\n3.4028235e38\n1e-400\n1e-50\n-0\n");
  const auto x = table.data.flatten();
  CHECK(x[0].item<float>() == static_cast<float>(1.00000017881393432617187499));
  CHECK(x[1].item<float>() == std::numeric_limits<float>::max());
  CHECK(x[2].item<float>() == 0);
  CHECK(x[3].item<float>() == 0);
  CHECK(std::signbit(x[4].item<float>()));
}

TEST_CASE("a text column is one-hot encoded with one feature per category") {
  const auto table = read_text(
      "roof,rooms,zone\n"
      "tile,3,20\n"
      "Slate,2,120\n"
      "tile,1,20\n"
      "grün,4,3\n",
      {.categories = {"zone"}});
  CHECK(table.features ==
        Names{"roof_Slate", "roof_grün", "roof_tile", "rooms", "zone_3", "zone_20", "zone_120"});
  CHECK(same_values(table.data, torch::tensor({{0, 0, 1, 3, 0, 1, 0},
                                               {1, 0, 0, 2, 0, 0, 1},
                                               {0, 0, 1, 1, 0, 1, 0},
                                               {0, 1, 0, 4, 1, 0, 0}},
                                              torch::kFloat)));
  CHECK(table.columns[0].categories == Names{"Slate", "grün", "tile"});
  CHECK(table.columns[1].categories.empty());
}

TEST_CASE(
    "different spellings of a number form one category, which is named after the first spelling") {
  const std::string text = "zone\n01\n2.0\n1\n-0\n+1.\n0\n2\n";
  const auto table = read_text(text, {.categories = {"zone"}, .max_categories = 3});
  CHECK(table.features == Names{"zone_-0", "zone_01", "zone_2.0"});
  CHECK(same_values(table.data.argmax(1), torch::tensor({1, 2, 1, 0, 1, 0, 2}, torch::kLong)));
  CHECK(same_values(table.data.sum(1), torch::ones({7})));
  CHECK(
      message_of(text, {.categories = {"zone"}, .max_categories = 2}) ==
      "line 5, column 'zone': expected at most 2 categories, got one more: '-0'; drop the column, "
      "or raise max_categories");
  const auto further = read_text("zone\n2\n1.0\n0.0\n", {.columns = table.columns});
  CHECK(further.features == table.features);
  CHECK(same_values(further.data.argmax(1), torch::tensor({2, 1, 0}, torch::kLong)));
  CHECK(message_of("zone\n3\n", {.columns = table.columns}) ==
        "line 2, column 'zone': expected one of '-0', '01', '2.0', got '3'");
  const auto missing =
      read_text("zone,x\n1,0\n,0\n1.0,0\nNA,0\n",
                {.categories = {"zone"}, .keep_missing = true, .max_categories = 2});
  CHECK(missing.features == Names{"zone_1", "zone_nan", "x"});
}

TEST_CASE("numbers belong to the same category only if they are exactly equal") {
  const std::string ids =
      "id\n9007199254740993\n9007199254740992\n9007199254740994\n-9007199254740993\n"
      "-9007199254740992\n123456789012345678901234567891\n123456789012345678901234567890\n"
      "9007199254740993.0\n900719925474099.3e1\n0.1\n0.10000000000000001\n1e400\n10e399\n1e401\n"
      "-1e-400\n-0\n";
  const CsvOptions options = {.categories = {"id"}};
  const auto table = read_text(ids, options);
  CHECK(table.columns[0].categories == Names{"-9007199254740993", "-9007199254740992", "-1e-400",
                                             "-0", "0.1", "0.10000000000000001", "9007199254740992",
                                             "9007199254740993", "9007199254740994",
                                             "123456789012345678901234567890",
                                             "123456789012345678901234567891", "1e400", "1e401"});
  CHECK(same_values(
      table.data.argmax(1),
      torch::tensor({7, 6, 8, 0, 1, 10, 9, 7, 7, 4, 5, 11, 11, 12, 2, 3}, torch::kLong)));
  const auto infinite = read_text("x\n10\ninf\n2\n-inf\n+Infinity\n", options_of_x());
  CHECK(infinite.columns[0].categories == Names{"-inf", "2", "10", "inf"});
  const auto texts = read_text("x\n1e9999999999999999999\n1\n1.0\n", options_of_x());
  CHECK(texts.columns[0].categories == Names{"1", "1.0", "1e9999999999999999999"});
}

TEST_CASE("distinct integers above 2^53 remain distinct, both as classes and as known categories") {
  const std::string rows = "x,id\n1,9007199254740992\n2,9007199254740993\n3,9007199254740994\n";
  const auto table = read_text(rows, {.target = "id", .categories = {"id"}});
  CHECK(same_values(table.target, torch::tensor({0, 1, 2}, torch::kLong)));
  const auto known = read_text("id,x\n9007199254740993,1\n9007199254740994.0,1\n",
                               {.target = "id", .columns = table.columns});
  CHECK(same_values(known.target, torch::tensor({1, 2}, torch::kLong)));
  CHECK(message_of("id,x\n9007199254740995,1\n", {.columns = table.columns}) ==
        "line 2, column 'id': expected one of '9007199254740992', '9007199254740993', "
        "'9007199254740994', got '9007199254740995'");
}

TEST_CASE("if any value in a column is text, all of the column's categories are text") {
  const std::string text = "zone\n1\n1.0\nold\n01\n";
  const auto table = read_text(text, {.categories = {"zone"}});
  CHECK(table.features == Names{"zone_01", "zone_1", "zone_1.0", "zone_old"});
  CHECK(message_of("zone\n1.00\n", {.columns = table.columns}) ==
        "line 2, column 'zone': expected one of '01', '1', '1.0', 'old', got '1.00'");
  CHECK(message_of(text, {.categories = {"zone"}, .max_categories = 2}) ==
        "line 4, column 'zone': expected at most 2 categories, got one more: 'old'; drop the "
        "column, or raise max_categories");
}

TEST_CASE("a categorical target is converted to category indices") {
  const auto table =
      read_text("length,kind\n1,virginica\n2,setosa\n3,setosa\n", {.target = "kind"});
  CHECK(same_values(table.target, torch::tensor({1, 0, 0}, torch::kLong)));
  CHECK(table.columns[1].categories == Names{"setosa", "virginica"});
  CHECK(table.features == Names{"length"});
}

TEST_CASE("a missing value becomes NaN or a separate category") {
  const std::string text =
      "rooms,roof,price\n"
      "NA,,127500\n"
      "2,?,106000\n"
      "4,Slate,178100\n"
      "nan,N/A,\n";
  const auto table = read_text(
      text, {.target = "price", .na_values = {"?"}, .keep_missing = true, .skip_bad = true});
  CHECK(table.features == Names{"rooms", "roof_Slate", "roof_nan"});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(
      same_values(table.data, torch::tensor({{nan, 0.F, 1.F}, {2.F, 0.F, 1.F}, {4.F, 1.F, 0.F}})));
  CHECK(table.first_skipped == Names{"line 5, column 'price': expected a target, got ''"});
  CHECK(message_of(text) ==
        "line 2, column 'rooms': expected a value, got 'NA'; this row is the first of "
        "2 bad rows");
  const auto unknown = read_text("x,y\n1,\n2,NULL\n", {.keep_missing = true});
  CHECK(same_values(unknown.data, torch::tensor({{1.F, nan}, {2.F, nan}})));
}

TEST_CASE("quoted fields are parsed according to RFC 4180") {
  const auto table = read_text(
      "\xEF\xBB\xBF\"a \"\"b\"\", c\",size\r\n"
      "\"x, y\r\nz\",\"1\"\r\n"
      "\r\n"
      "6\" pipe,2\r"
      "\"\"\"\",\" 3 \"\n"
      " \t\n"
      "\"x, y\r\nz\",4");
  const std::string name = "a \"b\", c";
  CHECK(table.features == Names{name + "_\"", name + "_6\" pipe", name + "_x, y\r\nz", "size"});
  CHECK(same_values(
      table.data,
      torch::tensor({{0, 0, 1, 1}, {0, 1, 0, 2}, {1, 0, 0, 3}, {0, 0, 1, 4}}, torch::kFloat)));
  const auto tabs =
      read_text("1\tx\n\ty\n", {.names = {"n", "t"}, .delimiter = '\t', .keep_missing = true});
  CHECK(tabs.features == Names{"n", "t_x", "t_y"});
  CHECK(tabs.data[1][0].isnan().item<bool>());
}

TEST_CASE("a second table is read with the first table's columns and categories") {
  const auto train = read_text("id,roof,rooms,price\n7,tile,3,5\n8,slate,2,4\n",
                               {.target = "price", .drop = {"id"}});
  const auto test = read_text("price,more,rooms,roof\n9,x,1,tile\n",
                              {.target = "price", .columns = train.columns});
  CHECK(test.features == train.features);
  CHECK(same_values(test.data, torch::tensor({{0., 1., 1.}}, torch::kFloat)));
  CHECK(same_values(test.target, torch::tensor({{9.}}, torch::kFloat)));
  const auto without =
      read_text("roof,rooms\ntile,1\n", {.drop = {"price"}, .columns = train.columns});
  CHECK(same_values(without.data, test.data));
  CHECK(message_of("roof,rooms\ntile,1\ntent,2\n", {.drop = {"price"}, .columns = train.columns}) ==
        "line 3, column 'roof': expected one of 'slate', 'tile', got 'tent'");
  CHECK(message_of("roof,rooms\n,1\n",
                   {.drop = {"price"}, .keep_missing = true, .columns = train.columns}) ==
        "line 2, column 'roof': expected one of 'slate', 'tile', got ''");
  CHECK(message_of("roof,rooms\ntile,1\n", {.columns = train.columns}) ==
        "expected a column 'price', found 'roof', 'rooms'; to read a file without this column, add "
        "the column to .drop");
}

TEST_CASE("a bad row throws an error that reports its line and column, or is skipped") {
  const std::string hint =
      " (line 2 made this column numeric; to read strings, add the column to .categories)";
  const auto check = [](const std::string& row, const std::string& problem) {
    INFO(row);
    const std::string text = "a,b,c\n1,x,2\n\n3,\"\n\",4\n" + row + "\n5,y,6\n";
    CHECK(message_of(text) == problem);
    const auto table = read_text(text, {.skip_bad = true});
    CHECK(same_values(table.data.select(1, 0), torch::tensor({1, 3, 5}, torch::kFloat)));
    CHECK(table.features == Names{"a", "b_\n", "b_x", "b_y", "c"});
    CHECK(table.skipped == 1);
    CHECK(table.first_skipped == Names{problem});
  };
  check("7,z", "line 6: expected 3 fields, got 2");
  check("7,z,8,", "line 6: expected 3 fields, got 4");
  check("7,z,8,9,10", "line 6: expected 3 fields, got 5");
  check("abc,z,8", "line 6, column 'a': expected a number, got 'abc'" + hint);
  for (const char* number :
       {"1e", "0x10", "1 2", "--1", "+-1", "+", "-", ".", "1.2.3", "1_0", "infinit", "True"}) {
    check("7,z," + std::string(number),
          "line 6, column 'c': expected a number, got '" + std::string(number) + "'" + hint);
  }
  for (const char* number : {"inf", "-infinity", "+INF", " Infinity"}) {
    check("7,z," + std::string(number),
          "line 6, column 'c': expected a finite number, got '" + std::string(number) + "'");
  }
  for (const char* number : {"1e39", "-1e400"}) {
    check("7,z," + std::string(number),
          "line 6, column 'c': expected a number in the range of float32, got '" +
              std::string(number) + "'");
  }
  check("7,null,8", "line 6, column 'b': expected a value, got 'null'");
  check("7,\"z\"x,8",
        "line 6: expected a quoted field to end with its closing quote, got text after the quote");
  check("7,z\xff,8", "line 6: expected valid UTF-8, got invalid bytes");
  check(std::string("7,\0,8", 5), "line 6: expected text, got a NUL byte");
}

TEST_CASE(
    "a number in a text column is reported with its line number, and skip_bad does not drop the "
    "rows that contain text") {
  std::string text = "x,code\n";
  for (int i = 0; i < 60; ++i) text += "1,A" + std::to_string(i) + "\n";
  text += "1,1e5\n";
  const std::string problem =
      "line 2, column 'code': expected a number, got 'A0' (line 62 made this column numeric; to "
      "read strings, add the column to .categories)";
  CHECK(message_of(text) == problem + "; this row is the first of 60 bad rows");
  CHECK(message_of(text, {.skip_bad = true}) ==
        problem + "; skip_bad would drop 60 of 61 values in the column");
  CHECK(read_text(text, {.categories = {"code"}}).features.size() == 62);
  // A missing value is neither a number nor text. At most half of the values in a column may be
  // text.
  const std::string half = "x,code\n1,A\n1,\n1,5\n1,\n";
  CHECK(read_text(half, {.skip_bad = true}).data.size(0) == 1);
  CHECK_THAT(message_of(half + "1,B\n", {.skip_bad = true}),
             EndsWith("; skip_bad would drop 2 of 3 values in the column"));
  CHECK(read_text("code\nA\nB\n5\n", {.skip_bad = true, .columns = {{.name = "code"}}})
            .data.size(0) == 1);
}

TEST_CASE(
    "a numeric column that contains infinities is rejected, but a text column may contain inf") {
  CHECK(message_of("x,y\n1,inf\n2,-Infinity\n") ==
        "line 2, column 'y': expected a finite number, got 'inf'; this row is the first of 2 bad "
        "rows");
  CHECK(read_text("y\ninf\nabc\n").features == Names{"y_abc", "y_inf"});
}

TEST_CASE("a number in na_values matches every spelling of that number") {
  const auto table = read_text("x,y\n-999,a\n-999.0,b\n1,-9.99e2\n-998.9,c\n",
                               {.na_values = {"-999"}, .keep_missing = true});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(table.features == Names{"x", "y_a", "y_b", "y_c", "y_nan"});
  CHECK(same_values(table.data.select(1, 0), torch::tensor({nan, nan, 1.F, -998.9F})));
  CHECK(message_of("x\n1\n9007199254740993\n+9007199254740992.\n",
                   {.na_values = {"9007199254740992"}}) ==
        "line 4, column 'x': expected a value, got '+9007199254740992.'");
}

TEST_CASE("both the error message and the table report the number of bad rows") {
  std::string text = "a,b\n1,2\n";
  for (int i = 0; i < 12; ++i) text += "3\n";
  CHECK(message_of(text) ==
        "line 3: expected 2 fields, got 1; this row is the first of 12 bad rows");
  const auto table = read_text(text, {.skip_bad = true});
  CHECK(table.skipped == 12);
  CHECK(table.first_skipped.size() == 10);
  CHECK(table.first_skipped.back() == "line 12: expected 2 fields, got 1");
  CHECK(message_of("a,b\n3\n", {.skip_bad = true}) == "line 2: expected 2 fields, got 1");
}

TEST_CASE("read_csv rejects a malformed table and reports the problem") {
  CHECK(message_of("") == "expected a line of column names, found an empty file");
  CHECK(message_of("\xEF\xBB\xBF \n\r\n") ==
        "expected a line of column names, found an empty file");
  CHECK(message_of("a,b\n\n") == "expected rows, found none");
  CHECK(message_of("a,b,a\n1,2,3\n") == "expected unique column names, got 'a' twice");
  CHECK(message_of("a,\"b\"c\n1,2\n") ==
        "line 1: expected a quoted field to end with its closing quote, got text after the quote");
  CHECK(message_of("a,b\n1,2\n\"3,4\n5,6\n") ==
        "line 3: expected a quote that closes the field, got the end of the file");
  CHECK(message_of("a\n1\n\"2", {.skip_bad = true}) ==
        "line 3: expected a quote that closes the field, got the end of the file");
  CHECK(message_of("a,b\n1,2\n", {.target = "c"}) ==
        "target: expected a column name, got 'c'; there are 'a', 'b'");
  CHECK(message_of("a,b\n1,2\n", {.target = "a", .drop = {"a"}}) ==
        "target: expected a column name, got 'a'; there are 'b'");
  CHECK(message_of("a,b\n1,2\n", {.categories = {"c"}}) ==
        "categories: expected a column name, got 'c'; there are 'a', 'b'");
  CHECK(message_of("a,b\n1,2\n", {.drop = {"c"}}) ==
        "drop: expected a column name, got 'c'; there are 'a', 'b'");
  CHECK(message_of("a\n1\n", {.target = "a"}) ==
        "expected at least one feature column, found none");
  CHECK(message_of("a\n1\n", {.drop = {"a"}}) ==
        "expected at least one feature column, found none");
  CHECK(message_of("1,2\n", {.names = {"a"}}) == "line 1: expected 1 fields, got 2");
  CHECK(message_of("a\nx\ny\nz\n", {.max_categories = 2}) ==
        "line 4, column 'a': expected at most 2 categories, got one more: 'z'; drop the column, or "
        "raise max_categories");
  CHECK(message_of(std::string(100, 'a') + "," + std::string(100, 'a') + "\n") ==
        "expected unique column names, got '" + std::string(40, 'a') + "...' twice");
}

TEST_CASE("read_csv rejects invalid options and files that it cannot read") {
  for (const char delimiter : {'"', '\n', '\r', '\0'}) {
    CHECK_THAT(message_of("a\n1\n", {.delimiter = delimiter}),
               ContainsSubstring("expected a delimiter other than a quote"));
  }
  for (const int64_t most : {int64_t{0}, (int64_t{1} << 24) + 1}) {
    CHECK_THAT(message_of("a\n1\n", {.max_categories = most}),
               ContainsSubstring("expected max_categories from 1 to 16777216, got "));
  }
  CHECK(message_of("a\n1\n", {.categories = {"a"}, .columns = {{.name = "a"}}}) ==
        "expected columns or categories, got both");
  CHECK(message_of("a\n1\n", {.max_bytes = 0}) == "expected a positive max_bytes, got 0");
  CHECK(message_of("a\n1\n", {.columns = {{.name = "a"}, {.name = "a"}}}) ==
        "columns: expected unique column names, got 'a' twice");
  CHECK(message_of("a\n1\n", {.columns = {{.name = "a", .categories = {"1", "2", "1.0"}}}}) ==
        "columns: expected each category of 'a' once, got 3, of which only 2 are distinct");
  const TempDir folder;
  CHECK_THAT(error_of([&] { read_csv(folder.path()); }),
             EndsWith(": expected a regular file, found a folder"));
  CHECK_THAT(error_of([&] { read_csv(folder.path() / "none.csv"); }),
             EndsWith("none.csv: cannot open it: No such file or directory"));
}

TEST_CASE("read_csv rejects a table larger than max_bytes, and the error names the option") {
  const std::string limit =
      "expected a table that needs at most 1000 bytes of memory (max_bytes), got ";
  CHECK(message_of("a,b,c,d\n1,2,3,4\n", {.max_bytes = 1000}) == "line 1: " + limit + "4 columns");
  CHECK(message_of("a\nx\ny\nz\n", {.max_bytes = 1000}) ==
        "line 4, column 'a': " + limit + "another category: 'z'");
  std::string rows = "a\n";
  for (int i = 0; i < 50; ++i) rows += "1\n";
  CHECK(message_of(rows, {.max_bytes = 1000}) == limit + "50 rows of 1 features");
  CHECK(message_of(std::string(1001, 'a'), {.max_bytes = 1000}) == limit + "a file of 1001 bytes");
  CHECK(read_text(rows, {.max_bytes = 2000}).data.size(0) == 50);
}

namespace {

// Returns one CSV record whose fields are distinct strings.
std::string numbered(size_t count, const std::string& before) {
  std::ostringstream all;
  for (size_t i = 0; i < count; ++i) all << (i == 0 ? "" : ",") << before << std::hex << i;
  return all.str() + '\n';
}

struct WorstCase {
  std::string name;
  std::string text;
  std::string outcome = "nothing was thrown";
  CsvOptions options = {};
};

// Returns files of about `size` bytes whose tables require a lot of memory.
std::vector<WorstCase> worst_cases(size_t size) {
  std::string letters = "x\n", spellings = "x\n", texts = "x,t\n";
  for (size_t i = 0; letters.size() < size; ++i) {
    letters += {static_cast<char>((i % 2 == 0 ? 'a' : 'A') + i / 2 % 26), '\n'};
  }
  for (size_t i = 0; spellings.size() < size; ++i) {
    spellings += std::string(i % 100, '0') + "1." + std::string(i / 100 % 100, '0') + "e" +
                 std::string(i / 10000, '0') + "0\n";
  }
  for (size_t i = 0; texts.size() < size; ++i) texts += "1,a" + std::to_string(i) + "\n";
  const std::string no_memory = "(max_bytes)", read = "nothing was thrown";
  const size_t columns = size / 9;
  const std::string letter_row = repeated("g,", 2 * columns - 2) + "g\n";
  const CsvOptions many = {.target = "t", .keep_missing = true, .max_categories = 1 << 24};
  return {
      {"commas", std::string(size, ','), no_memory},
      {"rows of commas", "a,t\n1,2\n" + repeated(",\n", size), read, {.keep_missing = true}},
      {"a bad row of commas", "a\n1\n" + std::string(size, ','), read, {.skip_bad = true}},
      {"bad rows", "a,b\n1,2" + repeated("\n3", size), read, {.skip_bad = true}},
      {"categories of one letter", letters, no_memory},
      {"a target of one letter", "t,x" + repeated("\nx,1", size), read, {.target = "t"}},
      {"numbers of one digit", "a\n" + repeated("1\n", size)},
      {"columns", numbered(columns, "") + repeated("1,", 2 * columns - 2) + "1"},
      {"columns of categories", numbered(columns, "") + numbered(columns, "a"), no_memory},
      {"columns of texts after a number",
       numbered(columns, "") + repeated("1,", 2 * columns - 2) + "1\n" + letter_row + letter_row,
       "skip_bad would drop",
       {.skip_bad = true}},
      {"a long name", std::string(size / 2, 'a') + letters.substr(1, size / 2), no_memory},
      {"numbers in many spellings", spellings, read, options_of_x()},
      {"categories", texts, read, many},
      {"digits of a number", "a\n" + std::string(size, '9') + "\n",
       "a number in the range of float32"},
      {"digits of a category", "x\n" + std::string(size, '9') + "\n", read, options_of_x()},
      {"quotes", "a\n\"" + std::string(size / 2 * 2, '"') + "\"\n"},
      {"blank lines", "a\n1\n" + std::string(size, '\n')},
  };
}

// Returns the value from a line in /proc/self/status, converted to bytes.
double status_of(const std::string& key) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(key)) return 1024 * std::stod(line.substr(key.size()));
  }
  return 0;
}

}  // namespace

TEST_CASE("reading a CSV file uses at most 64 MiB of memory plus 16 times the file size") {
  if (sconce::test::is_sanitized) SKIP("the sanitizer's own memory counts too");
  const TempDir folder;
  const char* chosen = std::getenv("SCONCE_CSV_BYTES");  // for manual checks
  const size_t size = chosen != nullptr ? std::stoul(chosen) : size_t{1} << 21;
  for (const auto& [name, text, outcome, options] : worst_cases(size)) {
    INFO(name);
    const auto file = folder.write("table.csv", text);
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // resets the peak
    const double before = status_of("VmRSS:"), begin = thread_seconds();
    const std::string error = error_of([&, &given = options] { read_csv(file, given); });
    const double seconds = thread_seconds() - begin, peak = status_of("VmHWM:") - before;
    if (chosen != nullptr) WARN(name << ": " << peak / 0x1p20 << " MiB, " << seconds << " s");
    CHECK(peak <= 16. * static_cast<double>(text.size()) + 0x1p26);
    if (chosen == nullptr) CHECK_THAT(error, ContainsSubstring(outcome));
  }
}

TEST_CASE("a table with many columns is read in linear time") {
  const size_t count = 200000;
  const std::string text = numbered(count, "c") + repeated("1,", 2 * count - 2) + "1";
  const CsvOptions options = {.target = "c0", .max_bytes = int64_t{1} << 30};
  const double begin = thread_seconds();
  const auto table = read_text(text, options);
  CsvOptions known = options;
  known.columns = table.columns;
  CHECK(read_text(text, known).features == table.features);
  CHECK(table.features.size() == count - 1);
  CHECK(thread_seconds() - begin < 30);  // takes under 2; one search per name takes minutes
}

namespace {

// Decodes a string that read_csv.py encoded as a single word.
std::string unescaped(const std::string& word) {
  std::string text;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      text += word[i];
    } else {
      text += static_cast<char>(std::stoi(word.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
  }
  return text;
}

Names read_names(std::istream& in, int64_t count) {
  Names names(static_cast<size_t>(count));
  for (auto& name : names) {
    in >> name;
    name = unescaped(name.substr(1));
  }
  return names;
}

Names read_names(std::istream& in) {
  int64_t count = 0;
  in >> count;
  return read_names(in, count);
}

torch::Tensor read_floats(std::istream& in, int64_t rows, int64_t columns) {
  const auto values = torch::empty({rows, columns});
  auto* value = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < rows * columns; ++i) {
    std::string bits;
    in >> bits;
    value[i] = std::bit_cast<float>(static_cast<uint32_t>(std::stoul(bits, nullptr, 16)));
  }
  return values;
}

}  // namespace

// SCONCE_CSV_CASES can specify a file of additional cases written by read_csv.py.
TEST_CASE("read_csv reads CSV files the same way as pandas") {
  const char* others = std::getenv("SCONCE_CSV_CASES");
  std::ifstream cases(others != nullptr ? others : SCONCE_TESTS_DIR "/reference/read_csv.txt");
  int read = 0, refused = 0;
  for (std::string line; std::getline(cases, line);) {
    std::istringstream words(line);
    std::string delimiter, target, text, outcome;
    CsvOptions options;
    words >> delimiter >> options.keep_missing >> options.skip_bad >> target;
    options.categories = read_names(words);
    options.na_values = read_names(words);
    words >> text >> outcome;
    options.delimiter = unescaped(delimiter)[0];
    options.target = unescaped(target.substr(1));
    INFO(text);
    if (outcome == "refused") {
      const std::string error = message_of(unescaped(text), options);
      for (std::string part; words >> part;) CHECK_THAT(error, ContainsSubstring(unescaped(part)));
      ++refused;
      continue;
    }
    int64_t rows = 0, columns = 0, skipped = 0;
    words >> rows >> columns >> skipped;
    const Names names = read_names(words, columns);
    const auto table = read_text(unescaped(text), options);
    CHECK(table.features == names);
    CHECK(table.skipped == skipped);
    const auto expected = read_floats(words, rows, columns);
    CHECK(same_values(table.data, expected));
    CHECK(same_values(table.data.signbit(), expected.signbit()));
    std::string kind;
    words >> kind;
    if (kind == "numbers") CHECK(same_values(table.target, read_floats(words, rows, 1)));
    if (kind == "categories") {
      const auto codes = torch::empty({rows}, torch::kLong);
      for (int64_t i = 0; i < rows; ++i) words >> codes.mutable_data_ptr<int64_t>()[i];
      CHECK(same_values(table.target, codes));
    }
    CHECK(table.target.defined() == (kind != "none"));
    CHECK_FALSE(words.fail());
    ++read;
  }
  CHECK(read >= 30);
  CHECK(refused >= 15);
}

TEST_CASE("read_csv returns float32 regardless of the default dtype") {
  const auto ours = torch::get_default_dtype();
  torch::set_default_dtype(torch::scalarTypeToTypeMeta(torch::kFloat64));
  const auto table = read_text("rooms,roof\n2,slate\n3,tile\n");
  torch::set_default_dtype(ours);
  CHECK(table.data.scalar_type() == torch::kFloat);
}
